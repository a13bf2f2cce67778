// What gives a prediction's answer away is out of sight until there is one: desk/parts.py names, in the metadata of a cell that asks, the cells that wait
// for it. They stay in their places and can be run: what they make is needed further down.
const OPEN = /=\s*\(?\s*\.\.\.(?!\w)/; // nothing, or not everything, has been filled in
const BEHIND = "threeloops-behind";
const FIRST = "threeloops-behind-first"; // of a run: it says why nothing is to be seen

const hides = (cell) => cell.model.getMetadata("threeloops")?.hides ?? [];
const waits = (cell) => OPEN.test(cell.model.sharedModel.getSource());

const draw = (notebook) => {
  const hidden = new Set(notebook.widgets.filter(waits).flatMap(hides));
  let before = false;
  for (const { model, node } of notebook.widgets) {
    const now = hidden.has(model.id);
    node.classList.toggle(BEHIND, now);
    node.classList.toggle(FIRST, now && !before);
    before = now;
  }
};

// A function that looks after the cells of a notebook; to be called again when there are others.
export const behind = () => {
  const attended = new WeakSet();
  return (notebook) => {
    for (const cell of notebook.widgets) {
      if (attended.has(cell) || !hides(cell).length) continue;
      attended.add(cell);
      cell.model.sharedModel.changed.connect(() => draw(notebook));
    }
    draw(notebook);
  };
};
