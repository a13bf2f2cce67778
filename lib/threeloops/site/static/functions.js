// A function on a page becomes one that can be written and tried; what is written stays here until it is deleted.
(() => {
  'use strict';
  const {AS_WRITTEN, Question, yours, indented, made, left, leave} = window.threeloops;
  const SHOWN = [6, 30]; // lines, at least and at most
  const KEPT_MS = 500; // after the last key
  const COUNTS = new Set(['right', 'slip', 'limit', 'off']); // what came through, and can be told right from wrong

  class Written extends Question {
    constructor(section) {
      const stub = section.querySelector('.drill-stub');
      super(section, made('textarea', {className: 'drill-code', wrap: 'off', autocapitalize: 'off'}), yours);
      Object.assign(this, {key: section.dataset.function, named: section.dataset.name, seed: AS_WRITTEN});
      this.stub = stub.textContent;
      this.isTask = section.dataset.kind === 'task';
      const afresh = made('button', {type: 'button', textContent: 'Start again'});
      afresh.addEventListener('click', () => this.afresh());
      const more = this.isTask ? [this.hintButton, this.workingButton, afresh] : [afresh];
      stub.replaceWith(this.form('Your function', 'Try it', ...more), this.said, this.working);
      this.answer.addEventListener('input', () => this.changed());
      this.answer.addEventListener('keydown', event => { if (indented(event)) this.changed(); });
      this.put(this.stub);
      this.begin();
      left(this.place).then(kept => this.again(kept), () => {}); // where nothing can be kept, nothing was
    }

    get place() {
      return `function ${this.key}`;
    }

    ready() {
      return yours.call('functions.ready');
    }

    put(code) {
      this.answer.value = code;
      this.answer.rows = Math.min(SHOWN[1], Math.max(SHOWN[0], code.split('\n').length + 2));
    }

    again(kept) {
      if (!kept || this.answer.value !== this.stub) return;
      this.put(kept.written);
      this.say('As you left it.');
    }

    changed() {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.keep(), KEPT_MS);
    }

    keep() {
      clearTimeout(this.timer);
      return this.keeping(() => leave(this.place, {written: this.answer.value}));
    }

    afresh() {
      if (this.answer.value !== this.stub && !confirm('Put the beginning in place of what you wrote?')) return;
      this.put(this.stub);
      this.begin();
      this.keep();
      this.answer.focus();
    }

    hinted(number) {
      return yours.call('functions.hint', this.key, number);
    }

    worked() {
      return yours.call('functions.working', this.key);
    }

    async check() {
      const written = this.answer.value;
      this.keep();
      const verdict = await this.doing(() => yours.attempt('functions.tried', this.key, this.named, this.seed, written));
      if (!verdict) return;
      const right = verdict.status === 'right';
      this.say(verdict.message, right ? 'drill-right' : 'drill-wrong');
      if (!this.isTask) return; // the desk's history has no place for the functions of the sets
      if (right) this.show(verdict.working);
      if (COUNTS.has(verdict.status)) this.settle(right ? 'right' : 'wrong', written, verdict.slips);
    }
  }

  for (const section of document.querySelectorAll('.drill[data-function]')) new Written(section);
})();
