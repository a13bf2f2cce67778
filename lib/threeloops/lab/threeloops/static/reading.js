// A part as a page that one reads: an editor's buttons are away until they are asked for, and one button, or the key N, runs what stands before the next
// question. A drill set is graded where it stands.
const VIEW = "threeloops-editor"; // kept in the browser: whether the editor's buttons are wanted
const SETUP = /^sheet\.ask\(/m;

const unanswered = ({ model }) => {
  const about = model.getMetadata("threeloops")?.card;
  if (!about) return false;
  const source = model.sharedModel.getSource();
  return source === `${about.before}...${about.after}`;
};

// What runs cells: which a kernel has run already, and all that have to be run before some place of a notebook.
export const reading = (app, Widget, actions, { copies, grade }) => {
  const ranIn = new WeakMap(); // cell -> id of the kernel that ran it last
  const kernelOf = (panel) => panel.sessionContext.session?.kernel?.id;
  actions.executed.connect((_, { notebook, cell }) => ranIn.set(cell, kernelOf(notebook.parent)));
  const ran = (panel, cell) => Boolean(kernelOf(panel)) && ranIn.get(cell) === kernelOf(panel);
  // A check that nobody has answered yet says so and no more; its question stands on its card.
  const missing = (panel, end) =>
    panel.content.widgets.slice(0, end).filter((cell) => {
      if (cell.model.type !== "code" || ran(panel, cell)) return false;
      return cell.model.getMetadata("threeloops")?.card?.kind === "prediction" || SETUP.test(cell.model.sharedModel.getSource()) || !unanswered(cell);
    });
  const run = async (panel, wanted) => {
    await panel.sessionContext.ready;
    return actions.runCells(panel.content, wanted, panel.sessionContext);
  };

  const go = (panel, cell) => {
    const { content } = panel;
    content.deselectAll();
    content.activeCellIndex = content.widgets.indexOf(cell);
    content.mode = "command";
    content.scrollToItem(content.activeCellIndex, "smart", 0.3).catch(() => undefined);
    content.node.focus();
  };
  const busy = new WeakSet();
  const onward = async (panel, said) => {
    if (busy.has(panel)) return;
    const { widgets, activeCellIndex, activeCell } = panel.content;
    const from = activeCell && unanswered(activeCell) ? activeCellIndex + 1 : activeCellIndex;
    const next = widgets.findIndex((cell, place) => place >= from && unanswered(cell));
    const end = next < 0 ? widgets.length : next;
    const wanted = missing(panel, end);
    if (wanted.length) {
      said.textContent = `Running ${wanted.length} cell${wanted.length > 1 ? "s" : ""} …`;
      busy.add(panel);
      const good = await run(panel, wanted).finally(() => busy.delete(panel));
      said.textContent = good ? (next < 0 ? "All has run." : "All has run up to the next question; once more goes there.") : "A cell above has stopped with an error.";
    } else {
      said.textContent = next < 0 ? "No further question." : "";
      go(panel, widgets[next < 0 ? widgets.length - 1 : next]);
    }
  };

  const attended = new WeakSet();
  const steps = new WeakMap(); // panel -> what its button does
  const attend = async (panel) => {
    if (!panel?.content?.widgets || !panel.contentHeader || !panel.context?.path?.startsWith(copies) || attended.has(panel)) return;
    attended.add(panel);
    await panel.context.ready;
    await panel.revealed;
    const said = Object.assign(document.createElement("span"), { className: "threeloops-told", role: "status" });
    const button = (words, title, does) => {
      const made = Object.assign(document.createElement("button"), { textContent: words, title });
      made.addEventListener("click", () => Promise.resolve(does(made)).catch((error) => { said.textContent = error.message; }));
      return made;
    };
    const own = [];
    steps.set(panel, () => onward(panel, said));
    own.push(button("Run to the next question", "Runs all cells that stand before it; once more goes there (key: N)", steps.get(panel)));
    const set = /(?:^|\/)drills\/(\w+)\/[^/]+$/.exec(panel.context.path)?.[1];
    if (set) own.push(button("Grade", "Saves this set, marks it and shows what went wrong beside it", async (pressed) => {
      pressed.disabled = true;
      said.textContent = "Grading: some seconds …";
      try {
        await panel.context.save();
        const { said: told, mark, page } = await grade({ set });
        const last = told.split("\n").at(-1);
        said.textContent = mark && page ? `${mark} points; what went wrong stands beside it.` : mark ? `${mark} points. ${last}` : last;
        said.title = told;
        if (page) app.commands.execute("docmanager:open", { path: copies.replace(/my\/$/, "") + page, factory: "HTML Viewer", options: { mode: "split-right", ref: panel.id } });
      } finally {
        pressed.disabled = false;
      }
    }));
    const editor = button("Editor", "Shows or hides JupyterLab's own buttons", () => view(!editing()));
    editor.className = "threeloops-editor";
    editor.setAttribute("aria-pressed", String(editing()));
    const bar = new Widget();
    bar.addClass("threeloops-bar");
    bar.node.append(...own, said, editor);
    const told = () => { bar.node.dataset.kernel = panel.sessionContext.kernelDisplayStatus; };
    for (const changes of ["statusChanged", "connectionStatusChanged", "kernelChanged"]) panel.sessionContext[changes].connect(told);
    told();
    panel.contentHeader.addWidget(bar);
    const opens = panel.content.widgets.filter(({ model }) => model.getMetadata("threeloops")?.opens);
    if (opens.length) run(panel, opens).catch(() => undefined); // the interview room is ready when it is opened, and again after a reload
    panel.toolbar.setHidden(!editing());
  };
  const statusBar = () => {
    const { currentWidget } = app.shell, ours = currentWidget?.id === "threeloops-start" || attended.has(currentWidget);
    [...app.shell.widgets("bottom")].find(({ id }) => id === "jp-main-statusbar")?.setHidden(ours && !editing());
  };
  const editing = () => localStorage.getItem(VIEW) === "yes";
  const view = (editor) => {
    localStorage.setItem(VIEW, editor ? "yes" : "no");
    for (const panel of app.shell.widgets("main")) if (attended.has(panel)) panel.toolbar.setHidden(!editor);
    document.body.classList.toggle("threeloops-reading", !editor);
    statusBar();
    for (const made of document.querySelectorAll("button.threeloops-editor")) made.setAttribute("aria-pressed", String(editor));
  };
  view(editing());
  const all = () => {
    [...app.shell.widgets("main")].forEach(attend);
    statusBar();
  };
  app.shell.layoutModified.connect(all);
  app.shell.currentChanged.connect(all);
  all();
  app.commands.addCommand("threeloops:next", { label: "Run to the next question", execute: () => steps.get(app.shell.currentWidget)?.() });
  app.commands.addKeyBinding({ command: "threeloops:next", keys: ["N"], selector: ".jp-Notebook.jp-mod-commandMode:not(.jp-mod-readWrite) :focus:not(:read-write)" });
  return { ran, missing, run };
};
