// The container that a build would have made, written by hand: the extension imports nothing but what JupyterLab shares, so it needs no build.
const here = new URL(".", document.currentScript.src);
let shared;
// A module that JupyterLab itself uses: the very same instance, so that what is run or opened here is run or opened there.
const asked = async (name) => (await Object.values(shared[name])[0].get())();

window._JUPYTERLAB = window._JUPYTERLAB || {};
window._JUPYTERLAB.threeloops = {
  // What JupyterLab shares with its extensions. Explorers draw with its Vega: without this they would ask Python for one.
  init: (scope) => {
    shared = scope;
    window.threeloopsVega ??= () => {
      const [found] = Object.values(shared["vega-embed"] ?? {});
      return found && Promise.resolve(found.get()).then((module) => module().default);
    };
  },
  get: async () => {
    const { plugin } = await import(new URL("desk.js", here));
    const style = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("desk.css", here) });
    document.head.append(style);
    return () => ({ __esModule: true, default: plugin(asked) });
  },
};
