// A question on a page becomes one that can be answered.
(() => {
  'use strict';
  const AS_WRITTEN = 'home'; // the seed of the questions that stand on the pages
  const {call, doing, made, add} = window.threeloops;
  const SITTING = [...crypto.getRandomValues(new Uint8Array(16))].map(byte => byte.toString(16).padStart(2, '0')).join('');

  // What every card has: a field, and what is said of it.
  class Asking {
    constructor(section) {
      this.section = section;
      this.question = section.querySelector('.drill-question');
      this.name = `answer-${++Asking.count}`;
      this.answer = made('input', {id: this.name, type: 'text', autocomplete: 'off', spellcheck: false});
      this.said = made('div', {className: 'drill-said'});
      this.said.setAttribute('role', 'status');
      // while the answer is being typed, Python comes
      this.answer.addEventListener('focus', () => {
        this.since = performance.now();
        this.doing(() => call('ready'));
      }, {once: true});
    }

    form(label, check, ...buttons) {
      const form = made('form', {className: 'drill-form'}, made('label', {htmlFor: this.name, textContent: `${label} `}), this.answer,
        made('button', {type: 'submit', className: 'drill-main', textContent: check}), ...buttons);
      form.addEventListener('submit', event => { event.preventDefault(); this.check(); });
      return form;
    }

    say(message, kind = '') {
      this.said.className = `drill-said ${kind}`;
      this.said.dataset.wait = '';
      this.said.textContent = message;
    }

    // What is said about a wait stands only where nothing else is said.
    doing(what) {
      return doing(what, (message, failed) => {
        if (failed || !this.said.textContent || this.said.dataset.wait) {
          this.say(message, failed ? 'drill-wrong' : '');
          this.said.dataset.wait = failed ? '' : 'yes';
        }
      });
    }
  }
  Asking.count = 0;

  // --- a number before the result ------------------------------------------------------------------

  class Prediction extends Asking {
    constructor(section) {
      super(section);
      this.result = document.getElementById(section.dataset.result);
      const skip = made('button', {type: 'button', textContent: 'Skip'});
      skip.addEventListener('click', () => this.tell(`Skipped: it comes out at ${section.dataset.outcome}.`));
      this.question.after(this.form('Your prediction', 'Predict', skip), this.said);
    }

    async check() {
      const written = this.answer.value.trim();
      if (!written) return this.say('Write a number here, or skip.', 'drill-wrong');
      const {outcome, unit} = this.section.dataset;
      const verdict = await this.doing(() => call('compared', written, outcome, unit));
      if (!verdict) return;
      if (verdict.status === 'unreadable') this.say(verdict.message, 'drill-wrong');
      else this.tell(verdict.message, verdict.status === 'right' ? 'drill-right' : '');
    }

    // The result stands further down, folded until now.
    tell(message, kind = '') {
      this.say(message, kind);
      this.result.open = true;
    }
  }

  // --- a drill ---------------------------------------------------------------------------------------

  class Card extends Asking {
    constructor(section) {
      super(section);
      this.key = section.dataset.drill;
      this.seed = section.dataset.seed || AS_WRITTEN;
      this.folded = section.querySelector('details');
      this.working = made('pre', {tabIndex: 0, hidden: true});
      this.working.setAttribute('aria-label', 'Working');
      this.hintButton = made('button', {type: 'button', textContent: 'Hint'});
      this.workingButton = made('button', {type: 'button', textContent: 'Show the working'});
      this.nextButton = made('button', {type: 'button', textContent: 'Other numbers'});
      this.hintButton.addEventListener('click', () => this.hint());
      this.workingButton.addEventListener('click', () => this.giveUp());
      this.nextButton.addEventListener('click', () => this.next());
      const form = this.form('Your answer, with its unit', 'Check', this.hintButton, this.workingButton, this.nextButton);
      this.question.after(form, this.said, this.working);
      if (this.folded) this.section.append(this.folded);
      this.begin();
    }

    begin() {
      this.hints = 0;
      this.settled = false;
      this.since = performance.now();
      this.cost = '';
      this.hintButton.hidden = false;
      this.workingButton.hidden = Boolean(this.folded);
      this.working.hidden = true;
      this.said.textContent = '';
      this.answer.value = '';
    }

    async check() {
      const written = this.answer.value;
      const verdict = await this.doing(() => call('judged', this.key, this.seed, written));
      if (!verdict) return;
      const right = verdict.status === 'right';
      this.say(verdict.message, right ? 'drill-right' : 'drill-wrong');
      if (right) this.show(verdict.working);
      if (verdict.status !== 'unreadable') this.settle(right ? 'right' : 'wrong', written, verdict.slips);
    }

    // What a hint costs is said before it is taken.
    async hint() {
      if (!this.cost) {
        this.cost = 'A right answer after one hint counts as slow.';
        this.say(`${this.cost} Press Hint again to take it.`);
        return;
      }
      const given = await this.doing(() => call('hint', this.key, this.seed, this.hints));
      if (!given) return;
      this.hints += 1;
      this.cost = given.next_cost;
      this.say(given.text + (given.next_cost ? ` (The next one: ${given.next_cost})` : ''));
      this.hintButton.hidden = !given.next_cost;
    }

    async giveUp() {
      const told = await this.doing(() => call('working', this.key, this.seed));
      if (!told) return;
      this.show(told.text);
      this.settle('given-up', '', []);
    }

    // The first readable answer is what counts, as in the interview room.
    async settle(status, written, slips) {
      if (this.settled) return;
      this.settled = true;
      const seconds = (performance.now() - this.since) / 1000;
      const position = Card.asked++;
      try {
        const attempt = await call('remembering.attempt', this.key, this.seed, written, status, slips.join(','),
          seconds, this.hints, SITTING, position, Date.now() / 1000);
        await add([attempt]);
      } catch (error) {
        this.section.append(made('p', {textContent: `This answer is not remembered: ${error.message}`}));
      }
    }

    show(working) {
      this.working.textContent = working;
      this.working.hidden = false;
      this.workingButton.hidden = true;
      this.hintButton.hidden = true;
    }

    next() {
      const fresh = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);
      return this.put(this.key, fresh, () => call('other', this.key, this.seed, fresh));
    }

    // Ask another question in this card; where it comes under another seed than asked for, it says so.
    async put(key, seed, posed = () => call('pose', key, seed)) {
      const asked = await this.doing(posed);
      if (!asked) return;
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
  Card.asked = 0;

  // --- the page that asks any drill: practise.html?drill=KEY&seed=WORD --------------------------------

  function practise(section) {
    const chosen = document.getElementById('drill-choice');
    const address = document.getElementById('drill-address');
    const asked = new URLSearchParams(location.search);
    const known = new Set([...chosen.options].map(option => option.value));
    section.hidden = false;
    const card = new Card(section);
    section.addEventListener('drill:put', () => {
      chosen.value = card.key;
      const here = `?drill=${encodeURIComponent(card.key)}&seed=${encodeURIComponent(card.seed)}`;
      history.replaceState(null, '', here);
      address.href = here;
    });
    chosen.addEventListener('change', () => { card.key = chosen.value; card.next(); });
    const key = asked.get('drill');
    if (key && !known.has(key)) card.say(`No drill is called ${key}; choose one above.`, 'drill-wrong');
    else if (key && asked.get('seed')) card.put(key, asked.get('seed'));
    else if (key) { card.key = key; card.next(); }
  }

  for (const section of document.querySelectorAll('.drill')) {
    if (section.dataset.outcome) new Prediction(section);
    else if (section.id === 'any-drill') practise(section);
    else new Card(section);
  }
})();
