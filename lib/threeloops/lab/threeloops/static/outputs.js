// What was just made is in view from its top: JupyterLab goes on to the next cell before the output has come (as of 4.6), and the upper half of a picture,
// or an explorer's controls, would never be seen.
const SETTLES_MS = 3000; // a picture is drawn after its cell has run
const ROOM_PX = 8; // above it
const HANDS = ["wheel", "keydown", "pointerdown", "touchmove"]; // whoever moves meanwhile knows where to

export const outputs = (actions) => {
  let end = () => undefined;
  actions.executed.connect((_, { notebook, cell }) => {
    const area = cell.outputArea?.node;
    const view = notebook.node.closest(".jp-WindowedPanel-outer") ?? notebook.node.querySelector(".jp-WindowedPanel-outer") ?? notebook.node;
    if (!area || notebook.activeCellIndex !== notebook.widgets.indexOf(cell) + 1) return;
    end();
    const show = () => {
      const above = view.getBoundingClientRect().top + ROOM_PX - area.getBoundingClientRect().top;
      if (above > 0 && area.offsetHeight) view.scrollTop -= above;
    };
    const sizes = new ResizeObserver(() => requestAnimationFrame(show));
    const over = setTimeout(() => end(), SETTLES_MS);
    end = () => {
      clearTimeout(over);
      sizes.disconnect();
      for (const kind of HANDS) window.removeEventListener(kind, end, true);
      end = () => undefined;
    };
    sizes.observe(area);
    sizes.observe(view.firstElementChild ?? view);
    for (const kind of HANDS) window.addEventListener(kind, end, true);
  });
};
