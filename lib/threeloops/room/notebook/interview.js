// The interview room. The kernel says what to show (`screen`); this shows it, sends what the reader does, and counts the seconds between two screens, so
// that no running cell can hold the clock up. Elements stay and change their words: that is what makes a screen reader speak them.
let rooms = 0;

// JupyterLab would take letters, arrows and Enter from a control. It looks for this attribute on the very element that has the focus.
const FOCUSABLE = new Set(["a", "button", "h3", "input", "pre", "select", "textarea"]);

function make(tag, { words, kind, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (words !== undefined) element.textContent = words;
  if (kind) element.className = kind;
  if (FOCUSABLE.has(tag)) element.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function render({ model, el }) {
  const id = `interview-${(rooms += 1)}`;
  const root = make("section", { kind: "interview-room", "aria-label": "interview room" });
  const parts = build(id, model.get("form"));
  root.append(...parts.rows);
  el.append(root);

  let waiting = false, acted = false, shown = { stage: "", key: "" }, slow;
  const send = (wish) => {
    if (waiting) return;
    waiting = acted = true;
    slow = setTimeout(() => {
      parts.said.textContent = model.get("busy") ?? "Sent. The kernel is busy with a cell; the clock goes on.";
      waiting = false; // sent again, it is done once all the same: the kernel knows by the turn
    }, 1500);
    model.send({ turn: shown.turn, ...wish });
  };
  const clock = ticking(parts.clock, parts.aloud);
  const voice = speaking(parts);

  const show = () => {
    const screen = model.get("screen");
    const answered = screen.turn !== shown.turn; // else it only brings news, and what the reader did is still on its way
    if (answered) {
      clearTimeout(slow);
      waiting = false;
    }
    draw(parts, screen);
    if (screen.starter && screen.key !== shown.key) parts.file.value = screen.starter;
    if (screen.key !== shown.key) clock.set(null);
    clock.set(screen.clock);
    if (screen.stage !== "asking") voice.hush();
    else if (screen.key !== shown.key) voice.read(`${screen.heading}. ${parts.question.innerText}`);
    if (answered && acted) focus(parts, screen, shown);
    if (answered) acted = false;
    shown = screen;
  };
  model.on("change:screen", show);
  const heard = (message) => {
    if (message.clock && shown.clock) clock.set(message.clock);
    if (!message.failed) return;
    clearTimeout(slow);
    waiting = acted = false;
    draw(parts, shown); // without the words for a wait
  };
  model.on("msg:custom", heard);

  parts.form.addEventListener("submit", (event) => {
    event.preventDefault();
    send({ do: "begin", ...Object.fromEntries(new FormData(parts.form)) });
  });
  parts.answering.addEventListener("submit", (event) => {
    event.preventDefault();
    send({ do: "answer", written: (shown.starter ? parts.file : parts.answer).value, sure: parts.sure.value });
  });
  parts.file.addEventListener("change", () => model.send({ do: "keep", key: shown.key, written: parts.file.value })); // left, it is saved
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const typing = event.target.matches("input[type=text]");
    if (typing || event.repeat) event.preventDefault(); // a key that is held down says something once
    if (typing && !event.repeat) event.target.form.requestSubmit(); // inside a notebook, the browser does not do that by itself
  });
  for (const [name, button] of Object.entries(parts.buttons)) button.addEventListener("click", () => send({ do: name }));
  parts.link.addEventListener("click", (event) => openBeside(event, parts.link));

  const sync = () => { if (!document.hidden) model.send({ do: "sync" }); };
  document.addEventListener("visibilitychange", sync);
  window.addEventListener("focus", sync);
  show();
  sync();
  return () => {
    clock.set(null);
    voice.leave();
    clearTimeout(slow);
    document.removeEventListener("visibilitychange", sync);
    window.removeEventListener("focus", sync);
    model.off("change:screen", show);
    model.off("msg:custom", heard);
  };
}

// --- the elements -------------------------------------------------------------------------------------------------------------------------------

function build(id, choices) {
  const heading = make("h3", { tabindex: "-1" });
  const about = make("p", { kind: "aside" });
  const clock = make("p", { kind: "clock", role: "timer", "aria-label": "clock" });
  const aloud = make("p", { kind: "aloud", role: "status", "aria-live": "polite", "data-clock": "" });
  const question = make("div", { id: `${id}-question` });
  const hints = make("ul", { "aria-label": "hints" });
  const said = make("p", { kind: "said", role: "status", "aria-live": "polite", "aria-atomic": "true" });
  const given = make("p", { kind: "aside" });
  const working = make("div");
  const link = make("a", { target: "_blank", rel: "noopener" });
  const taught = make("p", {}, "Taught in ", link, ".");
  const score = make("p", { kind: "aside" });
  const checklist = make("div");
  const buttons = {};
  for (const name of ["hint", "give up", "skip", "next", "stop", "continue"]) buttons[name] = make("button", { type: "button", words: name });
  buttons.next.className = buttons.continue.className = "main";

  const answer = make("input", { type: "text", id: `${id}-answer`, kind: "answer", autocomplete: "off", spellcheck: "false" });
  answer.setAttribute("aria-describedby", question.id);
  const line = make("span", {}, make("label", { for: answer.id, words: "Your answer" }), answer, " ");
  const file = make("textarea", { id: `${id}-file`, kind: "file", rows: "18", spellcheck: "false", autocapitalize: "off", "aria-describedby": question.id });
  const code = make("div", {}, make("label", { for: file.id, words: "Your file (indent with spaces; Tab leaves the field)" }), file);
  const sure = make("input", { type: "text", id: `${id}-sure`, kind: "few", inputmode: "decimal", autocomplete: "off", placeholder: "not said" });
  const surely = make("span", {}, make("label", { for: sure.id, words: "How sure, in %" }), sure, " ");
  const dictate = make("button", { type: "button", words: "dictate", hidden: "" });
  const answering = make("form", {}, line, code, surely, make("button", { words: "answer", kind: "main" }), " ", dictate);
  const reading = make("input", { type: "checkbox" });
  const spoken = make("p", { kind: "aside", hidden: "" }, make("label", {}, reading, " Read questions out, with a voice of this machine"));
  const cost = make("p", { id: `${id}-cost`, kind: "aside" });
  buttons.hint.setAttribute("aria-describedby", cost.id);
  const unfinished = make("p", { id: `${id}-unfinished` });
  buttons.continue.setAttribute("aria-describedby", unfinished.id);
  const row = make("div", { kind: "buttons" }, buttons.next, buttons.hint, buttons["give up"], buttons.skip, buttons.stop);
  const form = opening(id, choices);
  const left = make("div", {}, unfinished, buttons.continue);
  const rows = [heading, about, spoken, clock, aloud, question, hints, answering, given, said, cost, row, working, taught, checklist, left, form, score];
  return { rows, heading, about, spoken, reading, dictate, clock, aloud, question, hints, given, said, working, link, taught, score, checklist, buttons, answer, sure, line, file, code, answering, cost, unfinished, left, form };
}

function opening(id, choices) {
  const form = make("form", { "aria-label": "a new sitting" });
  const note = make("p", { id: `${id}-mode-note`, kind: "aside" });
  const field = (name, label, control) => {
    control.id = `${id}-${name}`;
    control.name = name;
    form.append(make("div", { kind: "row" }, make("label", { for: control.id, words: label }), control));
    return control;
  };
  const menu = (options, value) => {
    const select = make("select", {}, ...options.map(([key, words]) => make("option", { value: key, words })));
    select.value = value;
    return select;
  };
  const mode = field("mode", "Mode", menu(choices.modes, choices.first));
  mode.setAttribute("aria-describedby", note.id);
  form.append(note);
  const told = () => { note.textContent = `${choices.notes[mode.value]}.`; };
  mode.addEventListener("change", told);
  told();
  field("topic", "Topic", menu(choices.topics, ""));
  field("difficulty", "Difficulty", menu(choices.difficulties, ""));
  const length = field("length", "Questions", make("input", { type: "text", inputmode: "numeric", kind: "few", autocomplete: "off" }));
  length.placeholder = "as usual";
  field("extra", "Extra time", menu(choices.extras, "1"));
  form.append(make("div", { kind: "buttons" }, make("button", { words: "begin", kind: "main" })));
  return form;
}

// --- what they show -----------------------------------------------------------------------------------------------------------------------------

function draw(parts, screen) {
  const { stage } = screen;
  const asking = stage === "asking", answered = stage === "answered", between = stage === "start" || stage === "over";
  parts.heading.textContent = screen.heading;
  put(parts.about, screen.about);
  paragraphs(parts.question, screen.blocks);
  const earlier = screen.hints.filter((words) => words !== screen.said); // the last one stands below, where it is spoken
  parts.hints.replaceChildren(...earlier.map((words) => make("li", { words })));
  parts.hints.hidden = !earlier.length;
  put(parts.given, screen.given && `Your answer: ${screen.given}`);
  parts.said.textContent = screen.said;
  paragraphs(parts.working, screen.working, "Working");
  parts.taught.hidden = !screen.taught;
  parts.link.textContent = screen.taught;
  if (screen.link) parts.link.href = encodeURI(decodeURI(screen.link));
  else parts.link.removeAttribute("href");
  put(parts.score, screen.score);
  put(parts.cost, screen.hint_cost && `Hint: ${screen.hint_cost.charAt(0).toLowerCase()}${screen.hint_cost.slice(1)}`);
  checks(parts.checklist, screen.checklist);
  parts.answering.hidden = !asking;
  parts.line.hidden = Boolean(screen.starter);
  parts.code.hidden = !screen.starter;
  parts.dictate.disabled = Boolean(screen.starter);
  parts.form.hidden = !between;
  put(parts.unfinished, screen.unfinished && `Left unfinished: ${screen.unfinished}.`);
  parts.left.hidden = !between || !screen.unfinished;
  parts.buttons.hint.hidden = !asking || !screen.hint_cost;
  parts.buttons["give up"].hidden = parts.buttons.skip.hidden = !asking;
  parts.buttons.next.hidden = !answered;
  parts.buttons.stop.hidden = between;
}

function put(element, words) {
  element.textContent = words;
  element.hidden = !words;
}

function paragraphs(element, blocks, heading) {
  const found = blocks.map((block) => {
    if (!block.columns) return make("p", { words: block.text });
    const lines = make("pre", { words: block.text, kind: block.wide ? "wide" : "" });
    if (!block.wide) lines.tabIndex = 0; // it may have to be scrolled sideways, by keyboard too
    return lines;
  });
  element.replaceChildren(...(heading && found.length ? [make("h4", { words: heading })] : []), ...found);
  element.hidden = !found.length;
}

function checks(element, lines) {
  element.hidden = !lines.length;
  if (!lines.length) return element.replaceChildren();
  const [heading, ...rest] = lines;
  const boxes = rest.map((words) => make("div", { kind: "row" }, make("label", {}, make("input", { type: "checkbox" }), ` ${words}`)));
  element.replaceChildren(make("fieldset", {}, make("legend", { words: heading }), ...boxes));
}

// Only after something that the reader did: a page that is being drawn takes nobody's focus.
function focus(parts, screen, before) {
  if (screen.stage === "asking") {
    if (screen.key !== before.key) parts.answer.value = parts.sure.value = "";
    if (screen.starter) return parts.file.focus();
    parts.answer.focus();
    parts.answer.select();
  } else if (screen.stage === "answered") parts.buttons.next.focus();
  else if (screen.stage === "start" && before.stage === "start") parts.form.querySelector("[name=mode]").focus();
  else parts.heading.focus();
}

// --- the clock ----------------------------------------------------------------------------------------------------------------------------------

// Shown every second, spoken at its marks only.
function ticking(face, aloud) {
  let timer, before;
  const set = (clock) => {
    clearInterval(timer);
    face.hidden = !clock;
    if (!clock) { face.textContent = aloud.textContent = ""; before = undefined; return; }
    const began = performance.now();
    before ??= clock.left_s;
    const tick = () => {
      const left = clock.left_s - (performance.now() - began) / 1000;
      const words = left > 0 ? `${minutes(Math.ceil(left))} left of ${minutes(clock.allowed_s)}` : `time is up, ${minutes(Math.floor(-left))} over`;
      if (face.textContent !== words) face.textContent = words;
      const passed = clock.marks.filter(([mark]) => left <= mark && mark < before);
      if (passed.length) aloud.textContent = passed.at(-1)[1];
      before = left;
    };
    tick();
    timer = setInterval(tick, 250);
  };
  return { set };
}

function minutes(seconds) {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;
}

// --- the voice ----------------------------------------------------------------------------------------------------------------------------------

// Off until it is asked for, and only what this machine does by itself: voices of its own read, and a recogniser that works here listens, so nothing
// that is read or said leaves it. What was heard stands in the field, and counts once its writer sends it.
function speaking({ spoken, reading, dictate, answer, line, question, said }) {
  const lang = "en-US", synthesis = window.speechSynthesis, Listener = window.SpeechRecognition ?? window.webkitSpeechRecognition;
  const own = () => synthesis?.getVoices().find((one) => one.localService && one.lang.startsWith("en"));
  const offer = () => { spoken.hidden = !own(); };
  let listening = null; // what is heard belongs to the question at which it began
  const hush = () => {
    synthesis?.cancel();
    listening?.abort?.();
    listening = null;
  };
  const read = (words) => {
    hush();
    if (reading.checked && own()) synthesis.speak(Object.assign(new SpeechSynthesisUtterance(words), { voice: own(), lang }));
  };
  offer();
  synthesis?.addEventListener?.("voiceschanged", offer);
  reading.addEventListener("change", () => read(question.innerText));
  Promise.resolve(Listener?.available?.({ langs: [lang], processLocally: true })).then((there) => { dictate.hidden = there !== "available"; }, () => {});
  dictate.addEventListener("click", () => {
    hush();
    const mine = new Listener();
    const heard = ({ results }) => {
      if (listening !== mine || line.hidden) return; // a file is not dictated
      answer.value = results[0][0].transcript;
      said.textContent = `Heard: ${answer.value}. It counts once you press answer.`;
      answer.focus();
    };
    const failed = ({ error }) => {
      if (listening === mine) said.textContent = `Nothing was heard (${error}); type the answer, or dictate it again.`;
    };
    listening = Object.assign(mine, { lang, processLocally: true, onresult: heard, onerror: failed });
    mine.start();
  });
  const leave = () => {
    hush();
    synthesis?.removeEventListener?.("voiceschanged", offer);
  };
  return { read, hush, leave };
}

// --- the book -----------------------------------------------------------------------------------------------------------------------------------

// In the book's JupyterLab the chapter opens in a tab beside this one, at its part (lab/ does it); elsewhere the link is an ordinary one.
function openBeside(event, link) {
  const here = decodeURIComponent(window.location.pathname).match(/\/(?:lab|doc)(?:\/workspaces\/[^/]+)?\/tree\/(.*)$/);
  if (!here || !link.getAttribute("href")) return;
  const target = new URL(link.getAttribute("href"), `http://book/${here[1].split("/").map(encodeURIComponent).join("/")}`);
  const detail = { path: decodeURIComponent(target.pathname.slice(1)), heading: decodeURIComponent(target.hash.slice(1)) };
  const done = !window.dispatchEvent(new CustomEvent("threeloops:open", { detail, cancelable: true }));
  if (done) event.preventDefault();
}

export default { render };
