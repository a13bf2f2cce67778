// A question on a page becomes one that can be answered.
(() => {
  'use strict';
  const {AS_WRITTEN, SITTING, Asking, Question, call, compared, made, left, leave, questions, standing, verdict, wrong} = window.threeloops;
  const MOST_WRITTEN = 500; // letters of an answer that are kept

  // --- a number before the result ------------------------------------------------------------------

  class Prediction extends Asking {
    constructor(section) {
      super(section);
      Prediction.waiting.add(section.dataset.result);
      this.place = `${location.pathname.split('/').slice(-2).join('/')}#${section.dataset.result}`;
      const skip = made('button', {type: 'button', textContent: 'Skip'});
      skip.addEventListener('click', () => this.settle('', `Skipped: it comes out at ${section.dataset.outcome}.`));
      section.querySelector('.drill-question').after(this.form('Your prediction', 'Predict', skip), this.said);
      standing.enter(section, this.answer);
      left(this.place).then(kept => this.again(kept), () => {}); // where nothing can be kept, nothing was
    }

    // A prediction seldom needs Python. It comes behind the reader's back once one has been made: a question follows.
    ready() {
      return null;
    }

    // What was predicted on an earlier visit, as long as the question is the same.
    again(kept) {
      if (kept?.outcome !== this.section.dataset.outcome || this.answer.value) return;
      this.answer.value = kept.written;
      this.tell(kept.message, kept.kind);
    }

    async check() {
      const written = this.answer.value.trim();
      if (!written) return this.say('Write a number here, or skip.', 'drill-wrong');
      const {outcome, value, unit, example, usual = '[]'} = this.section.dataset;
      const told = compared(written, outcome, Number(value), unit, JSON.parse(usual), example)
        ?? await this.doing(() => call('compared', written, outcome, unit, usual));
      if (!told) return;
      if (told.status === 'unreadable') this.say(told.message, 'drill-wrong');
      else {
        await this.settle(written, told.message, told.status === 'right' ? 'drill-right' : '');
        if (!navigator.connection?.saveData) call('ready').catch(() => {});
      }
    }

    async settle(written, message, kind = '') {
      const {outcome} = this.section.dataset;
      this.tell(message, kind);
      await this.keeping(() => leave(this.place, {written, outcome, message, kind}));
    }

    // What gives the result away stands further down, folded until every card that it waits for has been answered.
    tell(message, kind = '') {
      this.say(message, kind);
      standing.answered(this.section, 'answered');
      Prediction.waiting.delete(this.section.dataset.result);
      for (const fold of document.querySelectorAll(`[data-behind~="${this.section.dataset.result}"]`)) {
        if (!fold.dataset.behind.split(' ').some(name => Prediction.waiting.has(name))) fold.open = true;
      }
    }
  }
  Prediction.waiting = new Set(); // for an answer: names of results

  // --- a drill ---------------------------------------------------------------------------------------

  class Card extends Question {
    constructor(section) {
      super(section);
      this.key = section.dataset.drill;
      this.seed = section.dataset.seed || AS_WRITTEN;
      this.question = section.querySelector('.drill-question');
      this.folded = section.querySelector('details');
      this.nextButton = made('button', {type: 'button', textContent: 'Other numbers'});
      this.nextButton.addEventListener('click', () => this.next());
      this.onButton = made('button', {type: 'button', textContent: 'Next question', hidden: true});
      this.onButton.addEventListener('click', () => this.onward());
      const form = this.form('Your answer, with its unit', 'Check', this.hintButton, this.workingButton, this.onButton, this.nextButton);
      this.question.after(form, this.said, this.working);
      if (this.folded) this.section.append(this.folded);
      this.begin();
      if (section.id === 'any-drill') return; // the page of all drills asks without an end
      standing.enter(section, this.answer);
      left(this.place).then(kept => { if (kept) standing.answered(section, 'right'); }, () => {});
    }

    get place() {
      return `right ${this.key}`; // the page of all drills has many in one card
    }

    begin() {
      super.begin();
      this.workingButton.hidden = Boolean(this.folded);
      this.onButton.hidden = true;
      this.answer.value = '';
    }

    // The question as data, where it stands as the page was made; Python comes after that.
    async ready() {
      await this.known();
      return call('ready');
    }

    async known() {
      const {family} = this.section.dataset;
      return this.seed === AS_WRITTEN && family ? (await questions(family))?.[this.key] : null;
    }

    async attempt(told) {
      const known = await this.known();
      if (!known) return super.attempt(told);
      const {topic, target_s, gap_s} = known;
      const {written, status, slips, seconds, position, at_s} = told;
      const away = seconds > target_s + gap_s; // nobody sat there
      return {session: SITTING, position, idea: this.key, topic, kind: 'number', seed: this.seed, written: written.slice(0, MOST_WRITTEN),
        status: away ? 'interrupted' : status, slips: status === 'wrong' && !away ? slips : '', seconds: Math.round(seconds * 100) / 100,
        target_s, extra: 1, hints: this.hints, at_s, share: 0, sure: null};
    }

    hinted(number) {
      return call('hint', this.key, this.seed, number);
    }

    worked() {
      return call('working', this.key, this.seed);
    }

    async check() {
      const written = this.answer.value;
      const {key, seed} = this;
      const told = await this.doing(async () => {
        const known = await this.known();
        const said = known && verdict(written, known);
        if (said) return said;
        if (known && wrong(written, known) && !this.python.running) this.surely('Not right. Which mistake it looks like, Python will say.');
        return call('judged', this.key, this.seed, written);
      });
      if (!told || key !== this.key || seed !== this.seed) return; // another question stands there by now
      const right = told.status === 'right';
      this.say(told.message, right ? 'drill-right' : 'drill-wrong');
      if (told.status !== 'unreadable') this.settle(right ? 'right' : 'wrong', written, told.slips); // first: what follows may read it
      if (right) {
        this.show(told.working);
        standing.answered(this.section, 'right');
        this.onButton.hidden = !this.leads();
        this.keeping(() => leave(this.place, {}));
      }
    }

    // Whether there is a next question here.
    leads() {
      return Boolean(standing.next(this.section));
    }

    onward() {
      const field = standing.next(this.section);
      field?.closest('.drill').scrollIntoView({block: 'center'});
      field?.focus({preventScroll: true});
    }

    next(key = this.key) {
      const fresh = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);
      return this.put(key, fresh, () => call('other', key, this.seed, fresh));
    }

    // Ask another question in this card; where it comes under another seed than asked for, it says so. Of two that were wished for one after the other,
    // the last one counts: the reader may be answering it already when the first one comes.
    async put(key, seed, posed = () => call('pose', key, seed)) {
      const turn = this.turn = (this.turn ?? 0) + 1;
      const asked = await this.doing(posed);
      if (!asked || turn !== this.turn) return;
      Object.assign(this, {key, seed: asked.seed ?? seed});
      this.question.replaceChildren(...asked.text.split('\n').filter(Boolean).map(line => made('p', {textContent: line})));
      const title = this.section.querySelector('.drill-title');
      if (title.dataset.named !== undefined) title.textContent = asked.title;
      this.section.setAttribute('aria-label', title.textContent);
      this.folded?.remove();
      this.folded = null;
      this.begin();
      this.say('A new question stands above.');
      this.answer.focus();
      this.section.dispatchEvent(new CustomEvent('drill:put'));
    }
  }

  for (const section of document.querySelectorAll('.drill:not([data-function])')) {
    if (section.dataset.outcome) new Prediction(section);
    else if (section.id !== 'any-drill') new Card(section); // practise.js has that one
  }
  Object.assign(window.threeloops, {Card});
})();
