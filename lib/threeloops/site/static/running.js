// A cell of a chapter becomes one that can be run, changed, and put back as it was. Each run begins from nothing: with the
// cells above that it needs, as they stand on the page now.
(() => {
  'use strict';
  const {doing, indented, made, script, tell, yours} = window.threeloops;
  const NARROW = 560; // pixels: below, a drawing takes its form for a phone
  const cells = new Map(); // place in the part -> cell

  class Cell {
    constructor(mark) {
      const {place, above, source} = mark.dataset;
      this.above = above ? above.split(' ') : [];
      cells.set(place, this);
      this.before = source;
      if (source !== undefined) return; // a card stands for it
      this.whole = mark.previousElementSibling;
      this.input = this.whole.querySelector('.cell_input');
      this.code = this.input.querySelector('pre');
      this.before = this.code.textContent.replace(/\n$/, '');
      if (mark.firstElementChild) return; // it says what the cell needs: here for those below it
      this.said = made('div', {className: 'run-said'});
      this.said.setAttribute('role', 'status');
      this.shown = made('div', {className: 'run-shown'});
      this.name = `cell ${++Cell.count}${under(this.whole)}`;
      const button = (words, what) => {
        const one = made('button', {type: 'button', textContent: words});
        one.setAttribute('aria-label', `${words} ${this.name}`);
        one.addEventListener('click', () => what.call(this));
        return one;
      };
      this.runButton = button('Run', this.run);
      this.changeButton = button('Change', this.change);
      this.undoButton = button('Undo', this.undo);
      this.undoButton.hidden = true;
      this.buttons = made('div', {className: 'run-buttons'}, this.runButton, this.changeButton, this.undoButton);
      this.input.append(this.buttons);
      mark.append(this.said, this.shown);
    }

    get source() {
      return this.field ? this.field.value : this.before;
    }

    change() {
      this.field = made('textarea', {className: 'drill-code', wrap: 'off', autocapitalize: 'off', spellcheck: false, value: this.before});
      this.field.setAttribute('aria-label', `The code of ${this.name}`);
      this.field.rows = this.before.split('\n').length + 1;
      this.field.addEventListener('keydown', event => {
        if (event.key === 'Enter' && event.shiftKey) {
          event.preventDefault();
          this.run();
        } else indented(event);
      });
      this.code.parentElement.hidden = true;
      this.buttons.before(this.field);
      this.changeButton.hidden = true;
      this.undoButton.hidden = false;
      this.field.focus();
    }

    // As the book has it, results too.
    undo() {
      this.field?.remove();
      this.field = null;
      this.code.parentElement.hidden = false;
      this.changeButton.hidden = false;
      this.undoButton.hidden = true;
      this.shown.replaceChildren();
      this.say('');
      for (const one of this.results()) one.hidden = false;
      this.runButton.focus();
    }

    results() {
      return this.whole.querySelectorAll(':scope > .cell_output');
    }

    say(message, again) {
      tell(this.said, message, again);
    }

    async run() {
      if (this.runButton.disabled) return;
      this.runButton.disabled = true;
      const told = JSON.stringify([...this.above.map(place => cells.get(place)), this].filter(Boolean).map(({source}) => [source]));
      try {
        const answer = await doing(() => yours.attempt('site.running.kernel.run', told), (message, failed, again) => {
          if (again) this.runButton.disabled = false;
          this.say(message, again);
        }, yours);
        if (answer) await this.show(answer);
      } finally {
        this.runButton.disabled = false;
      }
    }

    async show({shown, problem}) {
      for (const one of this.results()) one.hidden = true;
      this.undoButton.hidden = false;
      this.shown.replaceChildren();
      for (const one of shown) this.shown.append(one.chart ? await this.drawn(one) : text(one.text));
      if (problem) this.shown.append(Object.assign(text(problem), {className: 'run-problem'}));
      this.say(problem ? 'It ended with an error.' : shown.length ? 'Run here.' : 'Run here; it shows nothing.');
    }

    async drawn({title, caption, alt, chart, slim}) {
      const place = made('div');
      const picture = made('div', {}, place); // what draws gives its place a name of its own
      picture.setAttribute('role', 'img');
      picture.setAttribute('aria-label', alt);
      const figure = made('figure', {className: 'run-figure'}, made('p', {className: 'tl-title', textContent: title}),
        made('p', {className: 'tl-caption', textContent: caption}), picture);
      const library = await doing(() => script('vega.js'), (message, _, again) => this.say(message, again), yours);
      if (!library) return text(alt);
      await library.default(place, slim && this.whole.clientWidth < NARROW ? slim : chart, {renderer: 'svg', actions: false});
      place.setAttribute('aria-hidden', 'true');
      return figure;
    }
  }

  Cell.count = 0; // of those that can be run

  // The heading that a cell stands under, for whoever goes from button to button.
  function under(cell) {
    const heading = cell.closest('section')?.querySelector(':scope > :is(h1, h2, h3, h4)');
    return heading ? `, ${heading.textContent.replace(/#$/, '').trim()}` : '';
  }

  function text(words) {
    return made('pre', {tabIndex: 0, textContent: words});
  }

  for (const mark of document.querySelectorAll('.run')) new Cell(mark);
})();
