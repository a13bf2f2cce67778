// The book's JupyterLab: a start page, cards in place of code that a reader would have to edit, and links that arrive.
import { cards } from "./cards.js";
import { finding } from "./finding.js";
import { outputs } from "./outputs.js";
import { reading } from "./reading.js";
import { touched } from "./touch.js";

const WIDE_PX = 1100; // in a narrower window the contents would take the place of the text
const settings = JSON.parse(document.getElementById("jupyter-config-data")?.textContent ?? "{}");
const copies = settings.threeloopsCopies ?? "my/"; // desk/jupyter.py says where the reader's notebooks are

export const plugin = (asked) => ({
  id: "threeloops:desk",
  description: "The book's start page, cards for predictions and checks, links from part to part.",
  autoStart: true,
  activate: (app) => {
    followLinks(app);
    openBeside(app);
    begin(app, asked).catch((error) => console.error("threeloops:desk", error));
  },
});

const begin = async (app, asked) => {
  const [{ Widget }, notebooks] = await Promise.all([asked("@lumino/widgets"), asked("@jupyterlab/notebook")]);
  await app.restored;
  app.shell.collapseLeft?.(); // the start page says what there is; the list of files does not
  window.matchMedia(`(max-width: ${WIDE_PX}px)`).addEventListener("change", ({ matches }) => { if (matches) app.shell.collapseLeft?.(); });
  const toStart = startPage(app, Widget);
  const ran = reading(app, Widget, notebooks.NotebookActions, { copies, grade: (told) => server(app, "grade", told) });
  cards(app, notebooks.NotebookActions, ran, { read: (told) => server(app, "read", told), tell: (told) => server(app, "sure", told) });
  outputs(notebooks.NotebookActions);
  beside(app);
  remember(app);
  await toStart(!/\/tree\//.test(window.location.pathname));
};

// --- the start page -----------------------------------------------------------------------------------------------------------------------------

const startPage = (app, Widget) => {
  const page = new Widget();
  page.id = "threeloops-start";
  page.addClass("threeloops-page");
  page.node.tabIndex = -1;
  let written = "";
  const touch = touched((told) => server(app, "explorer", told));
  const find = finding(() => server(app, "finding"));
  Object.assign(page.title, { label: "Start", caption: "The book: parts, drills, the interview room", closable: true });
  const draw = async () => {
    await saved(app);
    const { html } = await server(app, "start");
    if (written !== html) {
      page.node.innerHTML = written = html;
      find(page.node);
    }
    await touch(page.node.querySelector(".touch"));
  };
  const drawn = () => draw().catch((error) => { page.node.textContent = `${error.message}. Is the server still running? \`book.py\` starts it again.`; });
  page.onAfterShow = drawn;
  page.onActivateRequest = () => page.node.focus();
  page.node.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link) return;
    event.preventDefault();
    const [path, heading] = link.getAttribute("href").split("#").map(decodeURIComponent);
    const open = app.commands.execute("docmanager:open", { path: copies + path });
    if (heading) open.then((there) => toHeading(there, heading)).catch(() => undefined);
  });
  const show = async (activate = true) => {
    if (!page.isAttached) app.shell.add(page, "main", { activate, mode: "tab-before" });
    if (activate) app.shell.activateById(page.id);
    if (page.isVisible) await drawn();
  };
  app.commands.addCommand("threeloops:start", { label: "Three Loops: start page", execute: () => show() });
  return show;
};

// A heading of a notebook that is being opened: it can be gone to once its cell has been drawn.
const toHeading = async (there, heading) => {
  await there.context.ready;
  await there.revealed;
  const view = there.content.node.getBoundingClientRect();
  for (let tries = 0; tries < 30; tries += 1) {
    await there.content.setFragment(`#heading=${heading}`);
    await new Promise((done) => { setTimeout(done, 150); });
    const top = there.node.querySelector(`[data-jupyter-id="${CSS.escape(heading)}"]`)?.getBoundingClientRect().top;
    if (top >= view.top - 5 && top < view.bottom) return;
  }
};

// What the book's half of the server answers; with something to tell it, a POST.
const server = async (app, name, told) => {
  const { baseUrl, token } = app.serviceManager.serverSettings;
  const headers = token ? { Authorization: `token ${token}` } : { "X-XSRFToken": /\b_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? "" };
  const answer = await fetch(`${baseUrl}threeloops/${name}`, told === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(told) });
  if (!answer.ok) throw new Error(`the book's server said ${answer.status} to "${name}"`);
  return answer.json();
};

// What the page says is read from the files.
const saved = (app) =>
  Promise.all([...app.shell.widgets("main")].filter(({ context }) => context?.path?.startsWith(copies) && context.model?.dirty).map(({ context }) => context.save().catch(() => undefined)));

// The notebook that was looked at last: the start page offers to go on with it.
const remember = (app) => {
  let last = "";
  const file = `${copies}lab/here.json`;
  // Nothing is asked for that is not there: a browser would complain of it.
  const read = async () => {
    const { contents } = app.serviceManager;
    const there = (await contents.get(`${copies}lab`)).content.some(({ name }) => name === "here.json");
    return there ? JSON.parse((await contents.get(file, { type: "file", format: "text" })).content) ?? {} : {};
  };
  // One note after the other, over all tabs of a browser: each adds to what the one before it has written.
  let earlier = Promise.resolve();
  const inTurn = (work) => {
    if (navigator.locks) return navigator.locks.request("threeloops-here", work);
    earlier = earlier.then(work);
    return earlier;
  };
  const note = () => {
    const path = app.shell.currentWidget?.context?.path ?? "";
    if (!path.startsWith(copies) || !path.endsWith(".ipynb") || path === last) return;
    last = path;
    const own = path.slice(copies.length);
    inTurn(async () => {
      const before = await read().catch(() => ({}));
      const content = JSON.stringify({ path: own, opened: [...new Set([...(before.opened ?? []), own])] });
      await app.serviceManager.contents.save(file, { type: "file", format: "text", content }).catch(() => undefined);
    });
  };
  app.shell.currentChanged.connect(note);
  note();
};

// The contents of the part, once there is a part and room for both.
const beside = (app) => {
  const show = () => {
    if (!app.shell.currentWidget?.content?.widgets || window.innerWidth < WIDE_PX) return;
    app.shell.currentChanged.disconnect(show);
    if (app.commands.hasCommand("toc:show-panel")) app.commands.execute("toc:show-panel");
  };
  app.shell.currentChanged.connect(show);
  show();
};

// --- links --------------------------------------------------------------------------------------------------------------------------------------

// A link to a heading of the same notebook changes the address and no more: JupyterLab keeps headings' ids out of the page (as of 4.6). So the notebook
// is asked to go to what the address says, also on the way back; a second click on a link changes no address. A link to the start page shows its tab.
const followLinks = (app) => {
  const follow = async () => {
    const place = decodeURIComponent(window.location.hash.slice(1));
    if (place) await app.shell.currentWidget?.content?.setFragment?.(place.includes("=") ? `#${place}` : `#heading=${place}`);
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("click", (event) => {
    const link = event.target.closest?.(".jp-Notebook a[href]");
    if (!link) return;
    if (decodeURIComponent(link.pathname).endsWith(`/${copies}start.html`)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      app.commands.execute("threeloops:start");
    } else if (link.getAttribute("href").startsWith("#") && link.hash === window.location.hash) follow();
  }, true);
};

// Who asks so (the interview room does) gets another notebook of the book opened beside this one.
const openBeside = (app) => {
  window.addEventListener("threeloops:open", (event) => {
    event.preventDefault(); // so the asker knows that it is done here
    app.commands.execute("docmanager:open", { path: event.detail.path });
  });
};
