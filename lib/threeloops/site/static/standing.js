// Which questions of a page have been answered, on this visit or an earlier one, and which of them comes next.
(() => {
  'use strict';
  const {made} = window.threeloops;
  const cards = new Map(); // in the order of the page: section of a card -> its field, and whether it has been answered
  const line = document.querySelector('.drill-standing') ?? made('p', {className: 'drill-standing'});

  function show() {
    const answered = [...cards.values()].filter(({done}) => done).length;
    line.textContent = `${answered} of ${cards.size} ${cards.size === 1 ? 'question' : 'questions'} answered on this page`;
    document.dispatchEvent(new CustomEvent('threeloops:standing', {detail: {answered, of: cards.size}}));
  }

  function enter(section, field) {
    if (!cards.size && !line.isConnected) document.querySelector('article h1')?.after(line);
    cards.set(section, {field, done: false});
    show();
  }

  function answered(section, words) {
    const card = cards.get(section);
    if (!card || card.done) return;
    card.done = true;
    section.querySelector('.drill-title').append(' ', made('span', {className: 'drill-mark', textContent: `✓ ${words}`}));
    show();
  }

  // The field of the next one that has not been answered, from the top again after the last; null where none is left.
  function next(section) {
    const all = [...cards.keys()];
    const here = all.indexOf(section) + 1;
    const found = [...all.slice(here), ...all.slice(0, here)].find(one => !cards.get(one).done);
    return found ? cards.get(found).field : null;
  }

  Object.assign(window.threeloops, {standing: {enter, answered, next}});
})();
