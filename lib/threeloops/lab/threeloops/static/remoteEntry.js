// JupyterLab goes to the cell in its address when the notebook is already open, but not when the address opens it (as of 4.6).
// This waits for the notebook, then asks it to go there; it shows the table of contents beside it; and it follows links inside the notebook.
// It imports nothing, so it needs no build: what follows the plugin is the container that a build would have made.

// desk.py names the cell in the page's configuration: an address with a # in it would swallow the token that Jupyter adds to its end.
const config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "{}");
const asked = config.threeloopsCell && decodeURIComponent(window.location.pathname).endsWith(config.threeloopsNotebook) ? `#cell-id=${config.threeloopsCell}` : "";
const first = !window.sessionStorage.getItem("threeloops:opened-at");
const address = window.location.hash || (first ? asked : "");
window.sessionStorage.setItem("threeloops:opened-at", address || "-");

const show = async (app) => {
  await app.restored;
  if (app.commands.hasCommand("toc:show-panel")) await app.commands.execute("toc:show-panel");
  if (!address) return;
  const go = async () => {
    const document = app.shell.currentWidget;
    if (!document?.context) return;
    app.shell.currentChanged.disconnect(go);
    await document.context.ready;
    await document.revealed;
    const cells = document.content.widgets ?? [];
    const index = cells.findIndex((cell) => `#cell-id=${cell.model.id}` === decodeURIComponent(address));
    if (index >= 0) document.content.activeCellIndex = index;
    if (cells.length) await goTo(document.content, decodeURIComponent(address), [150]);
  };
  app.shell.currentChanged.connect(go);
  await go();
};

// JupyterLab draws the cells of a long notebook one after the other while it is idle, which can take half a minute, and goes only to what is drawn
// (as of 4.6). So the cell that is asked for is drawn at once, then enough after it to fill a screen. Those above are drawn later and move nothing:
// the browser holds the active cell in its place.
const SCREEN_CELLS = 12;
const draw = async (notebook, first, last) => {
  for (let index = first; index < Math.min(last, notebook.widgets.length); index++) {
    const cell = notebook.widgets[index];
    if (!cell.isPlaceholder()) continue;
    cell.dataset.windowedListIndex = `${index}`;
    notebook.layout.insertWidget(index, cell);
    await cell.ready;
  }
};
const headingPlace = (text) => `#heading=${text.trim().replaceAll(" ", "-")}`;
const isAt = (cell, place) =>
  place === `#cell-id=${cell.model.id}` ||
  (cell.model.type === "markdown" && cell.model.sharedModel.getSource().split("\n").some((line) => /^#+ /.test(line) && headingPlace(line.replace(/^#+ /, "")) === place));

// What is drawn on arrival moves the place, so it is asked for again.
const goTo = async (notebook, place, againAfter_ms) => {
  const index = notebook.widgets.findIndex((cell) => isAt(cell, place));
  if (index >= 0) {
    await draw(notebook, index, index + 1);
    notebook.activeCellIndex = index;
    notebook.widgets[index].node.scrollIntoView();
    await draw(notebook, index + 1, index + SCREEN_CELLS);
  }
  await notebook.setFragment(place);
  for (const wait_ms of againAfter_ms) {
    await new Promise((drawn) => setTimeout(drawn, wait_ms));
    await notebook.setFragment(place);
  }
};

// A link to a heading of the same notebook ("#2-Roofline-·-60-min") changes the address and no more: JupyterLab keeps headings' ids out of the page
// (as of 4.6). So the notebook is asked to go to what the address says, also on the way back; a second click on a link changes no address.
const followLinks = (app) => {
  const follow = async () => {
    const notebook = app.shell.currentWidget?.content;
    const place = decodeURIComponent(window.location.hash.slice(1));
    if (!place || !notebook?.widgets) return;
    await goTo(notebook, place.startsWith("cell-id=") ? `#${place}` : `#heading=${place}`, [150]);
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("click", ({ target }) => {
    if (target.closest?.(".jp-Notebook a[href^='#']")?.hash === window.location.hash) follow();
  });
};

// The contents panel scrolls to where it guesses a heading that is not drawn yet, and so misses the far parts of a long notebook (as of 4.6).
const followContents = (app) => {
  window.addEventListener("mousedown", ({ target }) => {
    const entry = target.closest?.("#table-of-contents .jp-tocItem-heading")?.querySelector(".jp-tocItem-content");
    const notebook = app.shell.currentWidget?.content;
    if (entry && notebook?.widgets) goTo(notebook, headingPlace(entry.textContent), [50, 150, 400]);
  });
};

// Who asks so (the interview room does) gets another notebook of the book opened beside this one, at a heading.
const openBeside = (app) => {
  window.addEventListener("threeloops:open", async (event) => {
    event.preventDefault(); // so the asker knows that it is done here
    const { path, heading } = event.detail;
    const document = await app.commands.execute("docmanager:open", { path });
    if (!document?.content?.setFragment) return;
    await document.context.ready;
    await document.revealed;
    await goTo(document.content, `#heading=${heading}`, [150, 600]);
  });
};

const plugin = {
  id: "threeloops:open-at",
  description: "Opens a notebook at the cell in the address, with the contents panel shown.",
  autoStart: true,
  activate: (app) => { followLinks(app); followContents(app); openBeside(app); show(app).catch((error) => console.error("threeloops:open-at", error)); },
};

window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB.threeloops = {
  // What JupyterLab shares with its extensions. Explorers draw with its Vega: without this they would ask Python for one.
  init: (shared) => {
    window.threeloopsVega ??= () => {
      const [found] = Object.values(shared?.["vega-embed"] ?? {});
      return found && Promise.resolve(found.get()).then((module) => module().default);
    };
  },
  get: async () => () => ({ __esModule: true, default: plugin }),
};
