// An explorer's still picture becomes one that moves: the panel of JupyterLab, answered by Python in this page. What
// draws and what answers are fetched when the reader turns something, and not before.
(() => {
  'use strict';
  const {STATIC, FROM_A_FILE, call, doing, script, tell, made} = window.threeloops;
  const sections = document.querySelectorAll('.explorer');
  if (!sections.length) return;
  const BEFORE = 'Turn something, and the picture follows. The first turn fetches Python.';
  const TOUCHES = ['pointerdown', 'keydown', 'input', 'change'];
  const PASSING = new Set(['Tab', 'Shift', 'Control', 'Alt', 'Meta', 'Escape']); // keys of whoever only comes by

  let touch;
  const touched = new Promise(resolve => { touch = resolve; });
  // what panel.js asks of a page
  globalThis.threeloopsVega = () => touched.then(wait => wait(() => script('vega.js'))).then(library => library.default);
  globalThis.threeloopsPlace = notebook => new URL(notebook.replace(/^chapters\//, '../').replace(/ipynb$/, 'html'), STATIC).href;

  const QUICK_MS = 100; // what takes longer is not asked ahead: a turn that comes in between would have to wait for it
  const CALM_MS = 5; // after which nothing else is being turned

  // The answers to where a control is likely to go next: a place further, for which Python is asked while nobody turns,
  // or back to where it was.
  function guesses(name, state) {
    let known = new Map(), timer, last = {...state};
    const written = turns => JSON.stringify(turns);
    return {
      take: turns => {
        clearTimeout(timer);
        const found = known.get(written(turns));
        known = new Map();
        return found;
      },
      make: took_ms => {
        const before = JSON.parse(last.shown).standing;
        const {standing, controls} = JSON.parse(state.shown);
        const turned = controls.filter(control => standing[control.name] !== before[control.name]);
        const earlier = last;
        last = {...state};
        if (turned.length !== 1) return;
        const [{name: control, options}] = turned;
        known.set(written([[control, before[control]]]), earlier);
        const place = 2 * standing[control] - before[control];
        if (!options[place] || took_ms > QUICK_MS) return;
        const further = [[control, place]];
        const mine = known;
        timer = setTimeout(() => {
          const asked = call('exploring.ahead', name, JSON.stringify({serial: 0, turns: further}));
          asked.then(told => mine.set(written(further), told), () => {});
        }, CALM_MS);
      },
    };
  }

  const noted = () => {
    const note = made('p', {className: 'explorer-note'});
    note.setAttribute('role', 'status');
    return note;
  };
  const waiting = note => what => doing(what, (message, failed, again) => {
    tell(note, message, again);
    note.classList.toggle('explorer-failed', failed);
  });

  // The model that panel.js knows, with Python in this page behind it.
  function model(name, state, wait) {
    const heard = {};
    const guessed = guesses(name, state);
    return {
      get: key => state[key],
      set: (key, value) => { state[key] = value; },
      on: (event, tell) => { (heard[event] ??= new Set()).add(tell); },
      off: (event, tell) => heard[event]?.delete(tell),
      send: () => {},
      save_changes: async () => {
        const begun = performance.now();
        const {serial, turns} = state.turned;
        const known = guessed.take(turns);
        // Python turns too where the answer is known, so that it stands where the page does
        const asked = wait(() => call('exploring.turned', name, JSON.stringify(state.turned)));
        const told = known ?? await asked;
        if (!told) return;
        state.chart = told.chart;
        state.shown = JSON.stringify({...JSON.parse(told.shown), answers: serial});
        for (const tell of heard['change:shown'] ?? []) tell();
        asked.then(() => guessed.make(performance.now() - begun));
      },
    };
  }

  async function enliven(section, panel) {
    const name = section.dataset.explorer;
    const state = JSON.parse(section.querySelector('script').textContent);
    const still = section.querySelector('.tl-explorer');
    const drawing = section.querySelector('.tl-chart').firstElementChild;
    const note = noted();
    note.textContent = BEFORE;
    const wait = waiting(note);
    const el = made('div');
    section.append(note, el);
    panel.render({model: model(name, state, wait), el});
    if (state.chart) el.querySelector('.tl-chart').append(drawing); // until it is drawn
    still.remove();

    const drawn = JSON.parse(state.shown).drags.some(drag => drag.drawn);
    const begin = event => {
      const on = selector => event.target.closest(selector);
      // a finger on a chart moves the page, unless it draws a curve there
      const meant = event.type === 'pointerdown' ? on('.tl-controls') || (on('.tl-chart') && (event.pointerType === 'mouse' || drawn))
        : on('.tl-controls') && !PASSING.has(event.key);
      if (!meant) return;
      for (const type of TOUCHES) el.removeEventListener(type, begin, {capture: true});
      note.textContent = '';
      const other = noted(); // for what draws, so that what Python says does not take its place
      section.append(other);
      touch(what => waiting(other)(what).finally(() => other.remove()));
      wait(() => call('exploring.begun', name));
    };
    for (const type of TOUCHES) el.addEventListener(type, begin, {capture: true});
  }

  async function begin(section) {
    const note = noted();
    section.append(note);
    if (location.protocol === 'file:') return tell(note, FROM_A_FILE);
    const {default: panel} = await waiting(note)(() => script('panel.js'));
    note.remove();
    enliven(section, panel);
  }

  for (const section of sections) begin(section);
})();
