// The part of an explorer that lives in the page: controls, title, chart, sentence, table.
//
// It knows its model by get, set, on, save_changes and send alone, and the state is JSON:
//   in   chart   a Vega-Lite specification whose data have names and no rows, or ""
//   in   shown   {answers, controls: [{name, label, kind, options, …}], standing: {name: place}, title, caption, alt, said, table, drags: [{control, along, places, hold, drawn}], links: [{words, notebook}],
//               rows: {name: JSON}, signals: {name: value}}
//   out  turned  {serial, turns: [[name, place], …]}, in the reader's order, since one turn may reset another control;
//                every answer says in `answers` which serial it answers
// A page with a Vega of its own lends it: globalThis.threeloopsVega() promises vegaEmbed. Any other asks once, {wants: "vega"}.
// A page that is no notebook says where links lead: globalThis.threeloopsPlace(notebook) is an address.

const LOST_MS = 5000; // after so long without an answer another question may be asked
const READABLE = 0.78; // of its size, to which a drawing shrinks on a narrow page: letters of 13 pixels become 10; then it scrolls
const NARROW = 480; // pixels below which a drawing that has a narrow form takes it
const WIDE = { chart: "drawing, wider than the page", table: "table, wider than the page" }; // what the keyboard then scrolls
const SPEEDS = [0.5, 1, 2, 4];
const CALM_MS = 1000; // the shortest step for whoever asked their system for less motion

export default { render };

function render({ model, el }) {
  const page = scaffold(el);
  const chart = drawing(page.chart, () => vega(model), () => page.hold(), () => {
    hand.draw();
    busy();
  });
  let first; // how it stood at the beginning
  // `sent` and `unsent` are the turns that no answer has seen yet
  let standing = {}, sent = [], unsent = [], serial = 0, answered = 0, asked_ms = 0;

  const ask = () => {
    if (!unsent.length || (answered < serial && performance.now() - asked_ms < LOST_MS)) return;
    sent = [...sent, ...unsent]; // a lost question is asked again with the next one
    unsent = [];
    asked_ms = performance.now();
    serial = Math.max(serial, answered) + 1;
    model.set("turned", { serial, turns: sent });
    model.save_changes();
  };
  // the drawing is not yet that of the last turn
  const busy = () => page.chart.setAttribute("aria-busy", String(unsent.length > 0 || answered < serial || chart.busy()));
  const turn = (name, place) => {
    standing = { ...standing, [name]: place };
    if (unsent.at(-1)?.[0] === name) unsent.pop();
    unsent.push([name, place]);
    ask();
    busy();
  };
  page.reset.addEventListener("click", () => {
    for (const [name, place] of Object.entries(first)) if (standing[name] !== place) turn(name, place);
    desk.show(desk.told(), standing);
    page.controls.querySelector("input, select, button")?.focus();
  });
  const desk = controls(page.controls, turn, () => !unsent.length && answered >= serial);
  const hand = dragging(page.chart, chart.view, (name, place) => {
    if (standing[name] === place) return;
    turn(name, place);
    desk.show(desk.told(), standing);
  }, chart.hold);
  page.controls.addEventListener("pointerdown", ({ target }) => {
    if (!target.matches("input[type=range]")) return;
    chart.hold(true);
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, () => chart.hold(false), { once: true });
  });

  const show = () => {
    const shown = JSON.parse(model.get("shown"));
    answered = shown.answers;
    if (answered >= serial) sent = [];
    first ??= shown.standing;
    standing = { ...shown.standing, ...Object.fromEntries([...sent, ...unsent]) }; // the reader may be further already
    page.reset.hidden = JSON.stringify(first) === JSON.stringify(standing);
    desk.show(shown.controls, standing);
    el.firstChild.classList.toggle("tl-undrawn", !model.get("chart"));
    words(page, shown);
    chart.show(model.get("chart"), shown);
    hand.show(shown.drags);
    ask();
    busy();
  };
  model.on("change:shown", show);
  show();
  const wide = new ResizeObserver(() => {
    page.loose();
    page.reach();
    chart.fit();
  });
  wide.observe(el);
  return () => {
    model.off?.("change:shown", show);
    wide.disconnect();
    desk.end();
    chart.end();
  };
}

function make(tag, attributes = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}

function scaffold(el) {
  const page = {
    controls: make("div", { class: "tl-controls", role: "group", "aria-label": "controls" }),
    reset: make("button", own({ class: "tl-reset", type: "button", hidden: "" }), "reset"),
    title: make("p", { class: "tl-title" }),
    caption: make("p", { class: "tl-caption" }),
    chart: make("div", { class: "tl-chart" }),
    said: make("p", { class: "tl-said", role: "status", "aria-live": "polite" }),
    links: make("p", { class: "tl-links" }),
    table: make("div", { class: "tl-table" }),
  };
  const figure = make("figure", { class: "tl-figure" }, page.reset, page.title, page.caption, page.chart);
  el.append(make("div", { class: "tl-explorer" }, page.controls, figure, page.said, page.links, page.table));
  const held = [page.title, page.caption, page.chart, page.said];
  let width = 0;
  // What once took three lines keeps them, so that nothing below it moves; another width begins anew.
  page.hold = () => {
    page.reach();
    held.forEach((node) => (node.style.minHeight = `${node.offsetHeight}px`));
  };
  page.reach = () => {
    for (const [name, label] of Object.entries(WIDE)) {
      const part = page[name], wide = part.scrollWidth > part.clientWidth;
      if (wide === part.hasAttribute("tabindex")) continue;
      const told = { tabindex: 0, role: "group", "aria-label": label };
      for (const [key, value] of Object.entries(told)) wide ? part.setAttribute(key, value) : part.removeAttribute(key);
    }
  };
  page.loose = () => {
    if (el.offsetWidth === width) return;
    width = el.offsetWidth;
    held.forEach((node) => (node.style.minHeight = ""));
  };
  return page;
}

function words(page, shown) {
  for (const place of ["title", "caption", "said"]) {
    if (page[place].textContent !== shown[place]) page[place].textContent = shown[place];
    page[place].hidden = !shown[place];
  }
  if (page.table.written !== shown.table) page.table.innerHTML = page.table.written = shown.table;
  page.links.hidden = !shown.links.length;
  if (changed(page.links, shown.links)) page.links.replaceChildren(...shown.links.map(link));
  page.hold();
}

// A link to a part. A site says where its page is; whoever else shows the book opens it (JupyterLab's extension beside the present notebook); else it is a link.
function link({ words, notebook }) {
  const page = globalThis.threeloopsPlace?.(notebook);
  if (page) return make("a", { href: page }, words);
  const [, tree = "", path = ""] = decodeURIComponent(location.pathname).match(/^(.*?\/tree\/)(.*)$/) ?? [];
  const root = path.match(/^(.*?)(?:chapters|drills)\//)?.[1] ?? "";
  const anchor = make("a", { href: encodeURI(`${tree}${root}${notebook}`), target: "_blank" }, words);
  anchor.addEventListener("click", (event) => {
    const detail = { path: `${root}${notebook}` };
    if (!window.dispatchEvent(new CustomEvent("threeloops:open", { detail, cancelable: true }))) event.preventDefault();
  });
  return anchor;
}

// --- the chart ---

// A drawing in its narrow form, where the page is narrow and the drawing has one.
function formed({ usermeta, ...wide }, slim) {
  const { $schema, autosize, config } = wide;
  return slim && usermeta ? { $schema, autosize, config, ...usermeta.narrow } : wide;
}

// The names of the rows that a form draws: a form that is drawn anew has rows of its own.
function namesIn(form) {
  const found = new Set();
  JSON.stringify(form, (key, value) => (key === "data" && value?.name && found.add(value.name), value));
  return found;
}

// A chart without its numbers: the places of ticks and the slopes of words follow the ends of its axes.
const built = (chart) => JSON.stringify(chart && JSON.parse(chart), (name, value) => (name === "values" ? [] : typeof value === "number" ? 0 : value));

// Draws one state after the other; of those that come while it draws, only the last.
function drawing(place, library, drew, rested) {
  const isNarrow = () => place.clientWidth < NARROW;
  let drawn = "", rows = {}, result, next, busy = false, last, slim, holding = false, ghost, named;

  const draw = async (now) => {
    const { chart, rows: data, signals, alt } = now;
    last = now;
    const stays = holding && result && built(chart) === built(drawn);
    if ((chart !== drawn && !stays) || slim !== isNarrow()) {
      slim = isNarrow();
      const embed = await library();
      const form = formed(JSON.parse(chart), slim);
      named = namesIn(form);
      const datasets = Object.fromEntries(Object.entries(data).filter(([name]) => named.has(name)).map(([name, text]) => [name, JSON.parse(text)]));
      const params = Object.entries(signals).map(([name, value]) => ({ name, value }));
      const fresh = make("div");
      const old = result;
      result = await embed(fresh, { ...form, datasets, params }, { renderer: "svg", actions: false, theme: null });
      place.replaceChildren(fresh);
      old?.finalize();
      drawn = chart;
    } else {
      for (const [name, value] of Object.entries(signals)) if (!holding || !name.startsWith("end")) result.view.signal(name, value);
      for (const [name, text] of Object.entries(data)) if (named.has(name) && rows[name] !== text) result.view.data(name, JSON.parse(text));
      await result.view.resize().runAsync();
    }
    rows = data;
    const svg = place.querySelector("svg");
    svg.style.minWidth = `${READABLE * svg.viewBox.baseVal.width}px`;
    result.view.description(alt);
    const mark = place.querySelector("[role=graphics-document]");
    if (mark && mark.getAttribute("aria-label") !== alt) mark.setAttribute("aria-label", alt);
  };
  // The page may have become wide or narrow.
  const fit = () => {
    if (!last || busy || slim === isNarrow() || !JSON.parse(last.chart).usermeta) return;
    next = last;
    work();
  };
  const work = async () => {
    if (busy) return;
    busy = true;
    while (next) {
      const now = next;
      next = undefined;
      try {
        await draw(now);
        drew();
      } catch (error) {
        drawn = "";
        place.replaceChildren(make("p", {}, `The figure cannot be drawn: ${error.message}`));
      }
    }
    busy = false;
    rested();
  };
  // While something is held, the axes stay where they are and what was there before stays in sight, faint.
  const hold = (on) => {
    if (on === holding || (on && !result)) return;
    holding = on;
    ghost?.remove();
    ghost = undefined;
    if (on) {
      const root = place.querySelector("svg > g");
      ghost = root.cloneNode(true);
      for (const one of ghost.querySelectorAll("text, .background, .role-axis, .role-legend, .role-title")) one.remove();
      for (const one of ghost.querySelectorAll("*")) for (const name of ["role", "aria-label", "aria-roledescription"]) one.removeAttribute(name);
      ghost.setAttribute("class", "tl-ghost");
      ghost.setAttribute("aria-hidden", "true");
      root.after(ghost);
    } else if (last) {
      next ??= last;
      work();
    }
  };
  return {
    fit,
    hold,
    busy: () => busy,
    show: (chart, shown) => {
      if (!chart) return;
      next = { ...shown, chart };
      work();
    },
    view: () => result?.view,
    end: () => result?.finalize(),
  };
}

// What can be taken hold of in the drawing turns a control, whose slider does the same by keyboard. The line that
// follows the pointer is the page's own; all else waits for Python's answer.
const REACH = 14; // pixels
function dragging(place, view, turn, hold) {
  let drags = [], held, scales, line;
  let early; // a stroke that came before there were axes to measure it by: its points, as shares of the drawing
  // from the pointer to the drawing's pixels, and on to the units of its axes
  const where = (event) => {
    const svg = place.querySelector("svg"), box = svg.getBoundingClientRect(), shrunk = box.width / svg.viewBox.baseVal.width;
    // a stroke from before: shares of the drawing, whose form is still the same
    if ("across" in event) return where({ clientX: box.left + event.across * box.width, clientY: box.top + event.down * box.height });
    const [left, top] = view().origin(), { left: padLeft, top: padTop } = view().padding();
    return [(event.clientX - box.left) / shrunk - left - padLeft, (event.clientY - box.top) / shrunk - top - padTop];
  };
  const pixels = ([x, y]) => [view().scale("x")(x), view().scale("y")(y)];
  const away = ([x, y], hold) => {
    const [a, b = a] = hold.map(pixels);
    const along = ((x - a[0]) * (b[0] - a[0]) + (y - a[1]) * (b[1] - a[1])) / (Math.hypot(b[0] - a[0], b[1] - a[1]) ** 2 || 1);
    const part = Math.min(1, Math.max(0, along));
    return Math.hypot(x - a[0] - part * (b[0] - a[0]), y - a[1] - part * (b[1] - a[1]));
  };
  // the first that is near enough: points stand before the lines on which they lie
  const near = (event) => view() && (drags.find((drag) => away(where(event), drag.hold) < REACH) ?? below(event));
  // of a curve that is drawn, the point below or above the pointer
  const below = (event) => {
    const [x] = where(event), far = (drag) => Math.abs(pixels(drag.hold[0])[0] - x);
    const [left, right] = view().scale("x").range();
    return x < left || x > right ? undefined : drags.filter((drag) => drag.drawn).sort((one, other) => far(one) - far(other))[0];
  };
  const mark = (at) => {
    const [low, high] = view().scale("x").domain(), [bottom, top] = view().scale("y").domain();
    const ends = { x: [[at, bottom], [at, top]], y: [[low, at], [high, at]], "y/x": [[Math.max(low, bottom / at), Math.max(low, bottom / at) * at], [Math.min(high, top / at), Math.min(high, top / at) * at]] };
    line ??= document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("class", "tl-drag");
    line.setAttribute("d", ends[held.along].map(pixels).map((end, number) => `${number ? "L" : "M"}${end}`).join(""));
    place.querySelector("svg > g > g")?.append(line);
  };
  const follow = (event) => {
    if (held.drawn) held = below(event) ?? held;
    const [x, y] = where(event), at = { x: scales.x.invert(x), y: scales.y.invert(y) };
    at["y/x"] = at.y / at.x;
    const far = held.places.map((one) => Math.abs(Math.log(one / at[held.along])));
    const option = far.indexOf(Math.min(...far));
    mark(held.places[option]);
    turn(held.control, option);
  };
  const waits = () => !view() && drags.some((drag) => drag.drawn);
  const note = ({ clientX, clientY }) => {
    const box = [...place.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect()).find((one) => one.width);
    if (box) early.push({ across: (clientX - box.left) / box.width, down: (clientY - box.top) / box.height });
  };
  const take = (event) => {
    held = near(event);
    // an axis that reaches further after a turn does not pull what is held away with it
    if (held) scales = { x: view().scale("x").copy(), y: view().scale("y").copy() };
    if (held && !held.drawn) hold(true);
    return held;
  };
  let down = false;
  place.addEventListener("pointerdown", (event) => {
    if (waits()) {
      early ??= [];
      down = true;
      note(event);
    } else if (!take(event)) return;
    event.preventDefault();
    place.setPointerCapture(event.pointerId);
    if (held) follow(event);
  });
  // A finger on what can be taken hold of draws; anywhere else it moves the page.
  place.addEventListener("touchstart", (event) => {
    if (event.touches.length === 1 && event.cancelable && (waits() || near(event.touches[0]))) event.preventDefault();
  }, { passive: false });
  place.addEventListener("pointermove", (event) => {
    if (down && early) note(event);
    else if (held) follow(event);
    else if (drags.length) place.style.cursor = near(event) ? "grab" : "";
  });
  for (const end of ["pointerup", "pointercancel"]) {
    place.addEventListener(end, () => {
      held = undefined;
      down = false;
      line?.remove();
      hold(false);
    });
  }
  // the stroke from before, now that there are axes
  const draw = () => {
    if (!early || !view()) return;
    const [first, ...points] = early;
    early = undefined;
    if (take(first)) for (const point of [first, ...points]) follow(point);
    if (!down) {
      held = undefined;
      line?.remove();
    }
  };
  return { draw, show: (told) => (drags = told) };
}

let asked;
function vega(model) {
  asked ??= globalThis.threeloopsVega?.() ?? new Promise((resolve) => {
    const take = async (message) => {
      if (!message.vega) return;
      const address = URL.createObjectURL(new Blob([message.vega], { type: "text/javascript" }));
      resolve((await import(address)).default);
      URL.revokeObjectURL(address);
    };
    model.on("msg:custom", take);
    model.send({ wants: "vega" });
  });
  globalThis.threeloopsVega ??= () => asked;
  return asked;
}

// --- the controls ---

function controls(place, turn, settled) {
  const made = new Map();
  let last = [];
  return {
    told: () => last,
    show: (told, standing) => {
      last = told;
      for (const control of told) {
        let one = made.get(control.name);
        if (!one) {
          one = KINDS[control.kind](control, (at) => turn(control.name, at), settled);
          made.set(control.name, one);
          place.append(one.node);
        }
        one.show(control, standing[control.name]);
      }
    },
    end: () => made.forEach((one) => one.end?.()),
  };
}

const LONG = 24; // letters of an option for which a menu takes a row of its own
const unique = () => `tl-${crypto.getRandomValues(new Uint32Array(1))[0]}`; // every explorer has a module of its own
// JupyterLab would take arrow keys and letters from a control: "down" goes to the next cell, "a" inserts one.
const own = (attributes) => ({ ...attributes, "data-lm-suppress-shortcuts": "true" });
const changed = (node, options) => {
  const text = JSON.stringify(options);
  if (node.options_ === text) return false;
  node.options_ = text;
  return true;
};

function slider(control, turn, settled) {
  const id = unique();
  const input = make("input", own({ id, type: "range", min: 0, step: 1 }));
  const readout = make("span", { class: "tl-readout", "aria-hidden": "true" });
  const node = make("div", { class: "tl-control" }, make("label", { for: id }, control.label), input, readout);
  let options = control.options, player;
  const say = () => {
    readout.textContent = options[input.value];
    input.setAttribute("aria-valuetext", options[input.value]);
  };
  const go = (place) => {
    input.value = place;
    say();
    turn(Number(input.value));
  };
  input.addEventListener("input", () => go(input.value));
  if (control.plays) {
    player = playing(control, () => Number(input.value), () => options.length - 1, go, settled);
    node.classList.add("tl-plays");
    node.append(player.node);
  }
  return {
    node,
    show: (now, at) => {
      options = now.options;
      if (changed(node, options)) {
        input.max = options.length - 1;
        readout.style.minWidth = `${Math.max(...options.map((word) => word.length))}ch`;
      }
      if (Number(input.value) !== at) input.value = at;
      say();
      player?.show();
    },
    end: () => player?.end(),
  };
}

// Back, play, on, and how fast. The next step waits until the last one is drawn.
function playing(control, at, last, go, settled) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const back = make("button", own({ type: "button", "aria-label": "one step back" }), "◀");
  const play = make("button", own({ type: "button" }));
  const on = make("button", own({ type: "button", "aria-label": "one step on" }), "▶");
  const speed = make("select", own({ "aria-label": "speed" }));
  for (const times of SPEEDS) speed.append(make("option", { value: times }, `${times} ×`));
  speed.value = 1;
  let timer;
  const show = () => {
    const name = timer ? "pause" : at() === last() ? "play again" : "play";
    play.textContent = timer ? "pause" : "play";
    play.setAttribute("aria-label", name);
    back.disabled = at() === 0;
    on.disabled = at() === last();
  };
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
    show();
  };
  const wait = () => {
    const step_ms = control.plays / Number(speed.value);
    timer = setTimeout(tick, calm.matches ? Math.max(CALM_MS, step_ms) : step_ms);
  };
  const tick = () => {
    if (!play.isConnected || at() >= last()) return stop();
    if (settled()) go(at() + 1);
    wait();
    show();
  };
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (at() === last()) go(0);
    wait();
    show();
  });
  const step = (way) => () => {
    stop();
    go(Math.min(last(), Math.max(0, at() + way)));
    show();
  };
  back.addEventListener("click", step(-1));
  on.addEventListener("click", step(1));
  const node = make("div", { class: "tl-play", role: "group", "aria-label": `${control.label}: play` }, back, play, on, speed);
  return { node, show, end: stop };
}

function menu(control, turn) {
  const id = unique();
  const select = make("select", own({ id }));
  const node = make("div", { class: "tl-control" }, make("label", { for: id }, control.label), select);
  select.addEventListener("change", () => turn(select.selectedIndex));
  node.classList.toggle("tl-long", control.options.some((word) => word.length > LONG));
  return {
    node,
    show: (now, at) => {
      if (changed(select, now.options)) select.replaceChildren(...now.options.map((word) => make("option", {}, word)));
      if (select.selectedIndex !== at) select.selectedIndex = at;
    },
  };
}

function several(control, turn) {
  const node = make("fieldset", { class: "tl-several" }, make("legend", {}, control.label));
  const boxes = control.options.map((word) => {
    const box = make("input", own({ type: "checkbox" }));
    node.append(make("label", {}, box, word));
    return box;
  });
  node.addEventListener("change", () => turn(boxes.flatMap((box, place) => (box.checked ? [place] : []))));
  return { node, show: (now, at) => boxes.forEach((box, place) => (box.checked = at.includes(place))) };
}

// Boxes in a row, one of them chosen: a radio group, where a click or the arrow keys choose.
function tiles(control, turn) {
  const node = make("div", own({ class: "tl-tiles", role: "radiogroup", "aria-label": control.label }));
  const boxes = control.options.map((word, place) => {
    const box = make("button", { type: "button", role: "radio" }, make("b", {}, word), make("span"));
    box.addEventListener("click", () => choose(place));
    return box;
  });
  node.append(...boxes);
  let chosen = 0;
  const mark = (at) => {
    chosen = at;
    boxes.forEach((box, place) => {
      box.setAttribute("aria-checked", String(place === at));
      box.tabIndex = place === at ? 0 : -1;
    });
  };
  const choose = (place) => {
    mark(place);
    boxes[place].focus();
    turn(place);
  };
  node.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const ends = { Home: 0, End: boxes.length - 1 };
    if (way === undefined && !(event.key in ends)) return;
    event.preventDefault();
    event.stopPropagation();
    choose(way === undefined ? ends[event.key] : (chosen + way + boxes.length) % boxes.length);
  });
  return {
    node,
    show: (now, at) => {
      boxes.forEach((box, place) => {
        box.lastChild.textContent = now.notes[place] ?? "";
        box.classList.toggle("tl-marked", place === now.marked);
      });
      mark(at);
    },
  };
}

const KINDS = { slider, menu, several, tiles };
