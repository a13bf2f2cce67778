// What every card has that asks something: a field, what is said of it, and what is remembered.
(() => {
  'use strict';
  const {book, doing, made, tell, add} = window.threeloops;
  const SITTING = [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

  class Asking {
    constructor(section, answer = made('input', {type: 'text', autocomplete: 'off'}), python = book) {
      this.section = section;
      this.python = python;
      this.answer = Object.assign(answer, {id: `answer-${++Asking.count}`, spellcheck: false});
      this.said = made('div', {className: 'drill-said'});
      this.said.setAttribute('role', 'status');
      // while the answer is being written, Python comes
      this.answer.addEventListener('focus', () => {
        this.since = performance.now();
        this.doing(() => this.ready());
      }, {once: true});
    }

    ready() {
      return this.python.call('ready');
    }

    form(label, check, ...buttons) {
      const form = made('form', {className: 'drill-form'}, made('label', {htmlFor: this.answer.id, textContent: `${label} `}), this.answer,
        made('button', {type: 'submit', className: 'drill-main', textContent: check}), ...buttons);
      form.addEventListener('submit', event => { event.preventDefault(); this.check(); });
      return form;
    }

    say(message, kind = '', again = null) {
      this.said.className = `drill-said ${kind}`;
      this.said.dataset.wait = '';
      tell(this.said, message, again);
    }

    // What is said about a wait stands only where nothing else is said, or after what is sure already.
    async doing(what) {
      this.sure = '';
      return doing(what, (message, failed, again) => {
        if (failed || !this.said.textContent || this.said.dataset.wait) {
          this.say([this.sure, message].filter(Boolean).join(' '), failed || this.sure ? 'drill-wrong' : '', again);
          this.said.dataset.wait = failed && !again ? '' : 'yes';
        }
      }, this.python);
    }

    surely(message) {
      this.sure = message;
      this.say(message, 'drill-wrong');
      this.said.dataset.wait = 'yes';
    }

    // Where nothing can be kept, a line says so, once, with another try.
    async keeping(what) {
      try {
        await what();
        this.unkept?.remove();
      } catch (error) {
        this.unkept ??= made('p');
        tell(this.unkept, `This answer is not remembered: ${error.message}`, () => this.keeping(what));
        this.section.append(this.unkept);
      }
    }
  }
  Asking.count = 0;

  // What can be hinted at, shown, and got right or wrong: `key` names it, `seed` its numbers.
  class Question extends Asking {
    constructor(section, answer, python) {
      super(section, answer, python);
      this.working = made('pre', {tabIndex: 0, hidden: true});
      this.working.setAttribute('aria-label', 'Working');
      this.hintButton = made('button', {type: 'button', textContent: 'Hint'});
      this.workingButton = made('button', {type: 'button', textContent: 'Show the working'});
      this.hintButton.addEventListener('click', () => this.hint());
      this.workingButton.addEventListener('click', () => this.giveUp());
    }

    begin() {
      this.hints = 0;
      this.settled = false;
      this.since = performance.now();
      this.cost = '';
      this.hintButton.hidden = false;
      this.workingButton.hidden = false;
      this.working.hidden = true;
      this.said.textContent = '';
    }

    // What a hint costs is said before it is taken.
    async hint() {
      if (!this.cost) {
        this.cost = 'A right answer after one hint counts as slow.';
        this.say(`${this.cost} Press Hint again to take it.`);
        return;
      }
      const given = await this.doing(() => this.hinted(this.hints));
      if (!given) return;
      this.hints += 1;
      this.cost = given.next_cost;
      this.say(given.text + (given.next_cost ? ` (The next one: ${given.next_cost})` : ''));
      this.hintButton.hidden = !given.next_cost;
    }

    async giveUp() {
      const told = await this.doing(() => this.worked());
      if (!told) return;
      this.show(told.text);
      this.settle('given-up', '', []);
    }

    // The first readable answer is what counts, as in the interview room.
    async settle(status, written, slips) {
      if (this.settled) return;
      this.settled = true;
      const seconds = (performance.now() - this.since) / 1000;
      const position = Question.asked++;
      const at_s = Date.now() / 1000;
      Question.kept = this.keeping(async () => add([await this.attempt({written, status, slips: slips.join(','), seconds, position, at_s})]));
      await Question.kept;
    }

    // An attempt as it is kept. Where all that it needs is known, it does not wait for Python.
    attempt({written, status, slips, seconds, position, at_s}) {
      return this.python.call('remembering.attempt', this.key, this.seed, written, status, slips, seconds, this.hints, SITTING, position, at_s);
    }

    show(working) {
      this.working.textContent = working;
      this.working.hidden = false;
      this.workingButton.hidden = true;
      this.hintButton.hidden = true;
    }
  }
  Question.asked = 0;
  Question.kept = null; // until the last answer is

  // In a field for code a new line begins below the one before, and deeper after a colon. Tab stays what it is on every
  // page. Whether it was such a key.
  function indented(event) {
    if (event.key !== 'Enter' || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return false;
    const {selectionStart: start, selectionEnd: end, value} = event.target;
    const line = value.slice(value.lastIndexOf('\n', start - 1) + 1, start);
    event.preventDefault();
    event.target.setRangeText(`\n${line.match(/^ */)[0]}${line.trimEnd().endsWith(':') ? '    ' : ''}`, start, end, 'end');
    return true;
  }

  Object.assign(window.threeloops, {AS_WRITTEN: 'home', SITTING, Asking, Question, indented}); // the seed of what stands on the pages
})();
