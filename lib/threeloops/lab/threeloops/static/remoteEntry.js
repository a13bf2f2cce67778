// JupyterLab goes to the cell in its address when the notebook is already open, but not when the address opens it (as of 4.6).
// This waits for the notebook, then asks it to go there; and it shows the table of contents beside it.
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

const plugin = {
  id: "threeloops:open-at",
  description: "Opens a notebook at the cell in the address, with the contents panel shown.",
  autoStart: true,
  activate: (app) => { show(app).catch((error) => console.error("threeloops:open-at", error)); },
};

window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB.threeloops = {
  init: () => undefined,
  get: async () => () => ({ __esModule: true, default: plugin }),
};
