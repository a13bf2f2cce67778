// A number that is predicted, or answers a question as it stands on the page, judged at once where its spelling is plain;
// for every other Python is asked. What is said is what Python says, to the letter (answering.compared and judged), and a
// test holds the two together.
(() => {
  'use strict';
  const {STATIC} = window.threeloops;
  const LIMIT_MS = 20_000; // for the data of a family to come
  const PLAIN = /^~?([+-]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)\s*([A-Za-zµ%/]*)$/;
  const DOUBTFUL = /^[+-]?[1-9]\d{0,2},\d{3}$/; // thousands, or a decimal comma
  const POINTED = /^[+-]?[1-9]\d{0,2}\.\d{3}$/; // of what comes whole: decimals, or thousands
  const WHOLE = /^(?:B|bytes|tokens?)?$/;
  const PREFIXES = {'': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15};
  const BINARY = {Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40};
  const WELL = [0.8, 1.25]; // the outcome by what was said
  const LIKE = 0.05; // a number so near to a usual mistake's is taken for it
  const EDGE = 1e-9; // so near to where the words change that only Python knows

  const named = (unit, prefixes = PREFIXES) => Object.fromEntries(Object.entries(prefixes).map(([prefix, factor]) => [prefix + unit, factor]));
  const BYTES = {...named('B'), ...named('B', BINARY)};
  // What a question asks in -> the units in which it may be said, and what one of them is.
  const UNITS = {
    s: {ns: 1e-9, µs: 1e-6, us: 1e-6, ms: 1e-3, s: 1, seconds: 1, min: 60, minutes: 60, h: 3600, hours: 3600, day: 86400, days: 86400},
    B: {...BYTES, bytes: 1},
    'B/s': Object.fromEntries(Object.entries(BYTES).map(([unit, factor]) => [`${unit}/s`, factor])),
    FLOP: named('FLOP'),
    'FLOP/s': named('FLOP/s'),
    'FLOP/B': named('FLOP/B', {'': 1}),
    token: {'': 1, token: 1, tokens: 1},
    'token/s': {'token/s': 1, 'tokens/s': 1},
    W: {W: 1, kW: 1e3},
    m: {m: 1, cm: 0.01, km: 1e3},
    dollar: {dollar: 1, dollars: 1},
    '': {'': 1, '%': 0.01, x: 1, times: 1},
  };

  // Two digits, as Python writes them: a value in the very middle goes to the even one.
  function rounded(value) {
    const exact = value.toExponential(60);
    const down = /^\d\.[02468]50*e/.test(exact);
    const written = down ? exact.replace(/50*e/, 'e') : value.toExponential(1);
    const [digits, power] = written.split('e');
    if (power >= -4 && power < 2) return String(Number(written));
    return `${Number(digits)}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  }

  // A number with its unit, in the unit that is asked; null where only Python can read it, or knows which is meant.
  function read(written, value, unit) {
    const match = PLAIN.exec(written);
    const factor = match && Object.hasOwn(UNITS, unit) && Object.hasOwn(UNITS[unit], match[2]) ? UNITS[unit][match[2]] : null;
    if (factor === null) return null;
    const said = Number(match[1].replaceAll(',', '')) * factor;
    const nearest = other => said > 0 && Math.abs(Math.log(other / value)) > Math.abs(Math.log(said / value)) + EDGE;
    if (DOUBTFUL.test(match[1]) && !nearest(said / 1e3)) return null;
    if ((unit === 'B' || unit === 'token') && POINTED.test(match[1]) && WHOLE.test(match[2]) && !nearest(said * 1e3)) return null;
    return Number.isFinite(said) && Math.abs(said) < 1e200 ? said : null;
  }

  // A number in a unit of something else, or in none: what is said of it. Null for every other answer.
  function unreadable(written, unit, example) {
    const [, number, suffix] = PLAIN.exec(written) ?? [];
    if (!number || !unit || written.startsWith('~') || suffix in UNITS[unit]) return null;
    if (!suffix) return {status: 'unreadable', message: `${number} of what? Add the unit, like ${example}.`};
    if (Object.hasOwn(UNITS.dollar, suffix)) return {status: 'unreadable', message: `Dollars are money, which was not asked; give it like ${example}.`};
    const known = Object.values(UNITS).some(units => Object.hasOwn(units, suffix));
    return known ? {status: 'unreadable', message: `'${suffix}' does not measure what was asked; give it like ${example}.`} : null;
  }

  // The usual mistake that a number agrees with better than with any other, and than with the value: '' for none, null where
  // the last bit decides.
  function mistake(said, value, usual) {
    let [least, found] = [Math.abs(said - value), ''];
    for (const [wrong, told] of usual) {
      const away = Math.abs(said - wrong);
      const met = close(said, wrong, LIKE);
      if (met === null || met && Math.abs(away - least) <= EDGE * Math.abs(wrong)) return null;
      if (met && away < least) [least, found] = [away, told];
    }
    return found;
  }

  // What is said of a prediction; null where Python has to be asked.
  function compared(written, outcome, value, unit, usual = [], example = '') {
    const said = read(written, value, unit);
    if (said === null) return unreadable(written, unit, example);
    const told = `You said ${written}; it comes out at ${outcome}`;
    const met = mistake(said, value, usual);
    if (met === null) return null;
    const looks = met && ` It looks as if ${met}.`;
    if (said <= 0) return {status: 'other', message: `${told}.${looks}`};
    const times = value / said;
    if (!Number.isFinite(times) || WELL.some(edge => Math.abs(times / edge - 1) < EDGE)) return null;
    if (times >= WELL[0] && times <= WELL[1]) {
      return met ? {status: 'other', message: `${told}. Near, but it looks as if ${met}.`} : {status: 'right', message: `${told}. Well predicted.`};
    }
    return {status: 'other', message: `${told}, ${rounded(times)} times that.${looks}`};
  }

  // Within a tolerance of a target; null where the last bit decides.
  function close(value, target, tolerance) {
    const room = tolerance * Math.abs(target) - Math.abs(value - target);
    return Math.abs(room) <= EDGE * Math.abs(target) ? null : room > 0;
  }

  // The verdict on an answer to a question as it stands on the page; null where Python has to be asked.
  function verdict(written, question) {
    const {value, unit, tolerance, near, slips, working, example} = question;
    const said = read(written.trim(), value, unit);
    const other = said === null ? unreadable(written.trim(), unit, example) : null;
    if (other) return {...other, slips: [], working: ''};
    const right = said === null ? null : close(said, value, tolerance);
    if (right === null) return null;
    if (right) return {status: 'right', message: 'Right.', slips: [], working};
    const distance = ([, wrong]) => Math.abs(said - wrong);
    for (const group of [near, slips]) {
      const met = group.map(([, wrong, within]) => close(said, wrong, within));
      if (met.includes(null)) return null;
      const hits = group.filter((_, place) => met[place]);
      const [hit] = group === near ? hits : hits.sort((one, other) => distance(one) - distance(other));
      if (hit) return {status: 'slip', message: hit[3], slips: [hit[0]], working: ''};
    }
    return null;
  }

  // Whether an answer is certainly not right, whatever Python may still say of it.
  function wrong(written, {value, unit, tolerance}) {
    const said = read(written.trim(), value, unit);
    return said !== null && close(said, value, tolerance) === false;
  }

  // The questions of a family as data, once; null where they do not come, and Python is asked.
  const coming = {};
  async function fetched(family) {
    try {
      const response = await fetch(new URL(`judged/${family}.json`, STATIC), {signal: AbortSignal.timeout(LIMIT_MS)});
      if (response.ok) return await response.json();
    } catch { /* the next one asks again */ }
    delete coming[family];
    return null;
  }
  const questions = family => coming[family] ??= fetched(family);

  Object.assign(window.threeloops, {compared, questions, verdict, wrong});
})();
