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
    document.setFragment(decodeURIComponent(address));
  };
  app.shell.currentChanged.connect(go);
  await go();
};

// A link to a heading of the same notebook ("#2-Roofline-·-60-min") changes the address and no more: JupyterLab keeps headings' ids out of the page
// (as of 4.6). So the notebook is asked to go to what the address says, also on the way back; a second click on a link changes no address.
const followLinks = (app) => {
  const follow = async () => {
    const notebook = app.shell.currentWidget?.content;
    const place = decodeURIComponent(window.location.hash.slice(1));
    if (!place || !notebook?.widgets) return;
    const heading = place.startsWith("cell-id=") ? `#${place}` : `#heading=${place}`; // so named, it is found even while its cell is not drawn
    await notebook.setFragment(heading);
    await new Promise((drawn) => setTimeout(drawn, 150));
    await notebook.setFragment(heading); // cells that were drawn on arrival have moved it
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("click", ({ target }) => {
    if (target.closest?.(".jp-Notebook a[href^='#']")?.hash === window.location.hash) follow();
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
    for (const drawn_ms of [0, 150, 600]) { // cells that are drawn on arrival move it
      await new Promise((drawn) => setTimeout(drawn, drawn_ms));
      await document.content.setFragment(`#heading=${heading}`);
    }
  });
};

const plugin = {
  id: "threeloops:open-at",
  description: "Opens a notebook at the cell in the address, with the contents panel shown.",
  autoStart: true,
  activate: (app) => { followLinks(app); openBeside(app); show(app).catch((error) => console.error("threeloops:open-at", error)); },
};

window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB.threeloops = {
  init: () => undefined,
  get: async () => () => ({ __esModule: true, default: plugin }),
};
