// Cards: where a cell waits for a number, an input stands in place of its code. What is answered is written into the cell's source, between what
// desk/carded.py says stands before and after it, and the cell is run: so the notebook stays plain code, and needs no card to be read or to work.
import { behind } from "./behind.js";

const LITERAL = /^(?:\.\.\.|"(?:[^"\\\n]|\\.)*")$/;
const PLUMBING = /^(?:from threeloops\.drills\.engine import sheet\n+)?(?:"""Right[^"]*"""\n+)?sheet\.(?:begin|ask|check|check_function)\([^\n]*\)\s*$/; // of a drill set
const VERDICT = /^sheet\.check/m;
const WORDS = {
  prediction: { label: "Your prediction", button: "predict", noted: "Noted. What compares it stands below." },
  check: { label: "Your answer", button: "check", noted: "" },
  answer: { label: "Your answer", button: "check", noted: "" },
};
let count = 0;

// JupyterLab would take letters, arrows and Enter from a control without this attribute.
const make = (tag, { words, ...attributes } = {}, ...children) => {
  const element = document.createElement(tag);
  if (words !== undefined) element.textContent = words;
  if (tag === "input" || tag === "button") element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

// JupyterLab takes a save that begins before the one before has ended for somebody else's change, and asks which of the two counts (as of 4.6). On a slow
// machine a second answer comes so soon; so each save waits for the one before.
const saveInTurn = (context) => {
  const save = context.save.bind(context);
  let last = Promise.resolve();
  context.save = () => (last = last.catch(() => undefined).then(save));
};

export const cards = (app, actions, { ran, missing, run }, { read, tell }) => {
  const known = new WeakMap(); // cell -> its card
  const attended = new WeakSet();
  const veil = behind();

  const attend = async (panel) => {
    if (!panel?.content?.widgets || !panel.sessionContext || attended.has(panel)) return;
    attended.add(panel);
    saveInTurn(panel.context);
    await panel.context.ready;
    await panel.revealed;
    const scan = () => {
      for (const cell of panel.content.widgets) {
        if (VERDICT.test(cell.model.sharedModel.getSource())) cell.node.classList.add("threeloops-verdict");
        if (PLUMBING.test(cell.model.sharedModel.getSource())) cell.node.classList.add("threeloops-plumbing");
        const about = cell.model.getMetadata("threeloops")?.card;
        if (about && !known.has(cell)) known.set(cell, card(panel, cell, about, { read, tell, ran, missing, run }));
      }
      veil(panel.content);
    };
    panel.content.model.cells.changed.connect(() => setTimeout(scan));
    scan();
  };
  app.shell.layoutModified.connect(() => [...app.shell.widgets("main")].forEach(attend));
  app.shell.currentChanged.connect(() => attend(app.shell.currentWidget));
  [...app.shell.widgets("main")].forEach(attend);

  // Enter goes into the code of a cell; where a card stands in its place, it goes into the card.
  window.addEventListener("keydown", (event) => {
    const panel = app.shell.currentWidget;
    const input = event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey && known.get(panel?.content?.activeCell)?.waits();
    if (!input || panel.content.mode !== "command" || !panel.node.contains(document.activeElement)) return;
    if (document.activeElement.matches("input, textarea, select, button, a, [role=slider]") || !input.offsetParent) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    input.focus();
    input.select?.();
  }, true);
};

const card = (panel, cell, about, { read, tell, ran, missing, run }) => {
  const words = WORDS[about.kind];
  const id = `threeloops-card-${(count += 1)}`;
  const question = make("p", { class: "question", id: `${id}-question`, words: about.question ?? "" });
  const hint = make("span", { class: "hint", id: `${id}-hint`, words: about.hint ?? "" });
  const input = make("input", { type: "text", id, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-question ${id}-hint` });
  const sure = make("input", { type: "text", id: `${id}-sure`, class: "sure", inputmode: "decimal", autocomplete: "off", placeholder: "%", title: "From 0 to 100, or nothing: `progress` compares it with how often you are right" });
  const surely = make("label", { for: `${id}-sure`, words: "How sure?" });
  const submit = make("button", { class: "main", words: words.button });
  const skip = make("button", { type: "button", words: "skip" });
  const ask = make("button", { type: "button", class: "main", words: "Show the questions" });
  const code = make("button", { type: "button", class: "code", words: "code", "aria-pressed": "false", title: "Show the cell's code" });
  const said = make("p", { class: "said", role: "status" });
  const label = make("label", { for: id, words: words.label });
  const form = make("form", {}, ask, label, input, ...(about.key ? [surely, sure] : []), submit, ...(about.kind === "prediction" ? [skip] : []), code, hint);
  const root = make("section", { class: "threeloops-card", "aria-label": words.label }, question, form, said);

  const asking = () => panel.content.widgets.filter(({ model }) => about.asks?.includes(model.id));
  const written = () => {
    const source = cell.model.sharedModel.getSource();
    const { before, after } = about;
    const middle = source.slice(before.length, source.length - after.length);
    return source.startsWith(before) && source.endsWith(after) && LITERAL.test(middle) ? middle : null;
  };
  const show = () => {
    const literal = written();
    const coded = code.getAttribute("aria-pressed") === "true" || literal === null;
    cell.node.classList.toggle("threeloops-carded", !coded);
    const unasked = asking().some(({ model }) => !model.outputs?.length); // an answer to a question that nobody has seen
    ask.hidden = !unasked;
    for (const element of [label, input, surely, sure, submit]) element.hidden = unasked;
    root.hidden = literal === null; // the reader's own code stands there: it is what counts
    question.hidden = !about.question || Boolean(cell.model.outputs?.length);
    if (literal === null) return;
    const value = literal === "..." ? "" : JSON.parse(literal);
    if (document.activeElement !== input) input.value = value === "skip" ? "" : value;
    if (words.noted) said.textContent = value === "skip" ? "Skipped. The cells below say what it comes out at." : value && words.noted;
  };
  const runs = async (names) => {
    const cells = panel.content.widgets.filter(({ model }) => names.includes(model.id));
    await panel.sessionContext.ready;
    const needed = panel.content.widgets.filter((other) => about.needs?.includes(other.model.id) && !ran(panel, other));
    await run(panel, [...needed, ...cells]);
  };
  // What waited for a prediction fills in by itself, with all that stands before it and has not been run.
  const comesOut = () => {
    const { widgets } = panel.content, own = widgets.indexOf(cell);
    const hidden = cell.model.getMetadata("threeloops")?.hides ?? [];
    const last = widgets.findLastIndex(({ model }) => hidden.includes(model.id));
    const wanted = new Set([...missing(panel, Math.max(own, last) + 1), cell, ...widgets.filter(({ model }) => model.type === "code" && hidden.includes(model.id))]);
    return run(panel, widgets.filter((one) => wanted.has(one)));
  };
  // Whoever is wrong is led to the part that teaches it, unless it is this one.
  const leads = () => {
    const [name, copy] = about.taught ?? [];
    const judging = panel.content.widgets.find(({ model }) => model.id === (about.then?.[0] ?? cell.model.id));
    const said = Array.from({ length: judging?.model.outputs?.length ?? 0 }, (_, place) => [judging.model.outputs.get(place).toJSON().text ?? ""].flat().join("")).join("\n");
    if (!name || !said || /^Right\./m.test(said) || panel.context.path.endsWith(copy)) return [];
    const link = make("a", { href: "#", words: name });
    link.addEventListener("click", (event) => {
      event.preventDefault();
      window.dispatchEvent(new CustomEvent("threeloops:open", { detail: { path: panel.context.path.replace(/my\/.*$/, "my/") + copy }, cancelable: true }));
    });
    return [" Taught in ", link, "."];
  };
  const write = (value) => cell.model.sharedModel.setSource(about.before + JSON.stringify(value) + about.after);
  const onward = () => {
    const { content } = panel;
    content.deselectAll();
    content.activeCellIndex = Math.min(content.widgets.indexOf(cell) + 1, content.widgets.length - 1);
    content.mode = "command";
    content.node.focus();
    content.scrollToItem(content.activeCellIndex, "smart", 0.05).catch(() => undefined);
  };
  let turn = 0;
  // How sure it is counts before the verdict is seen; where the server does not hear it, the answer is checked all the same.
  const surelyHeard = async (value) => {
    if (!about.key || !sure.value.trim()) return { said: "", refused: "" };
    const whose = (name) => panel.content.widgets.map(({ model }) => new RegExp(`^${name} = "([^"]*)"`, "m").exec(model.sharedModel.getSource())?.[1]).find(Boolean) ?? "";
    return tell({ key: about.key, written: value, sure: sure.value, student: whose("student"), course: whose("course") })
      .catch(() => ({ said: "How sure you are could not be kept: the server did not answer.", refused: "" }));
  };
  // A prediction that is no number in the unit that is asked is told so while the card is open: the cells below would say it beside the result. Where the
  // server does not answer, they do.
  const refusal = async (value) =>
    about.unit === undefined ? "" : read({ written: value, unit: about.unit }).then(({ refusal: told }) => told, () => "");
  const answer = async (value) => {
    if (written() === null) return;
    const wrong = value === "skip" ? "" : await refusal(value);
    if (wrong) {
      said.textContent = wrong;
      input.focus();
      return;
    }
    write(value);
    if (about.kind === "prediction") {
      show();
      onward();
      return comesOut();
    }
    const own = (turn += 1); // a second answer may come while the first is being saved: the last one has the word
    said.textContent = "Checking …";
    const heard = await surelyHeard(value);
    if (heard.refused) { said.textContent = heard.refused; sure.focus(); return; }
    sure.value = "";
    await runs([cell.model.id, ...(about.then ?? [])]);
    await panel.context.save(); // `book.py grade` reads the file
    if (own === turn) said.replaceChildren(heard.said, ...leads());
    show();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const value = input.value.trim().replace(/^["']|["']$/g, "");
    if (value) answer(value);
    else said.textContent = about.kind === "prediction" ? "Write a number here, or skip." : "Write your answer here, a number with its unit where it has one.";
  });
  ask.addEventListener("click", async () => {
    const asks = panel.content.widgets.flatMap(({ model }) => model.getMetadata("threeloops")?.card?.asks ?? []);
    said.textContent = "Drawing your numbers …";
    await runs(asks);
    said.textContent = "";
    if (!input.hidden) input.focus();
  });
  skip.addEventListener("click", () => answer("skip"));
  code.addEventListener("click", () => {
    code.setAttribute("aria-pressed", String(code.getAttribute("aria-pressed") !== "true"));
    show();
  });
  root.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      event.preventDefault();
      panel.content.mode = "command";
      panel.content.node.focus();
    } else if (event.key === "Enter" && (event.target === input || event.target === sure)) {
      event.preventDefault(); // inside a notebook the browser does not submit by itself; a key that is held down says something once
      if (event.repeat) return;
      if (event.shiftKey && !input.value.trim()) runs([cell.model.id]).then(onward);
      else form.requestSubmit();
    }
  });
  cell.model.sharedModel.changed.connect(show);
  cell.model.outputs?.changed.connect(show);
  for (const asked of asking()) asked.model.outputs?.changed.connect(show);
  const place = async () => {
    await cell.ready;
    cell.node.append(root);
    show();
  };
  place();
  return { waits: () => (input.hidden ? ask : input) };
};
