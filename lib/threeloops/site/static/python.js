// Python for whatever on the page asks for it: it comes with the first call, and stays until the page is left.
(() => {
  'use strict';
  const STATIC = new URL('.', document.currentScript.src);
  const SLOW_MS = 400; // a wait that has to be explained
  const FROM_A_FILE = 'A browser runs nothing from a file. In the folder of these pages, run `python3 -m http.server`, and open http://localhost:8000.';
  const STOPPED = 'It was stopped, and Python starts again; what you wrote is still here.';
  // How long nothing may come, how long all that has come may take to start, and how long one script may take to come.
  const LIMITS = {stall_ms: 20_000, start_ms: 90_000, script_ms: 60_000};
  const seconds = limit_ms => `${limit_ms / 1000} seconds`;
  const megabytes = count => Math.floor(count / 1e6); // whole ones: each change is read aloud
  const howMuch = ({bytes, of}) => `${megabytes(bytes)} of ${megabytes(of)} MB`;
  const listeners = new Set(); // told how much has come

  // What did not come, and may come when it is asked for again.
  function lost(sentence) {
    return Object.assign(new Error(navigator.onLine ? sentence : `There is no network now. ${sentence}`), {again: true});
  }

  // One interpreter beside the page, which answers one call after another.
  class Python {
    worker = null;
    running = false; // whether it has answered
    came = {bytes: 0, of: 0};
    last = 0;
    waiting = new Map();

    start() {
      if (this.worker) return;
      if (location.protocol === 'file:') throw new Error(FROM_A_FILE);
      this.worker = new Worker(new URL('worker.js', STATIC), {type: 'module'});
      this.worker.onmessage = ({data}) => this.heard(data);
      this.worker.onerror = event => this.lose(event.message || 'worker.js did not come.');
      this.watch();
    }

    // Until its first answer Python has a limit: for the next bytes, and when all of them are here, for its start.
    watch() {
      const {bytes, of} = this.came;
      const here = of && bytes >= of;
      const limit = here ? LIMITS.start_ms : LIMITS.stall_ms;
      clearTimeout(this.watching);
      this.watching = setTimeout(() => this.lose(here ? `Python did not start within ${seconds(limit)}.`
        : of ? `Python stopped coming at ${howMuch(this.came)}: nothing more for ${seconds(limit)}.` : `Python did not come within ${seconds(limit)}.`), limit);
    }

    // Whoever waits is told why in vain; another try begins afresh.
    lose(sentence) {
      const {waiting} = this;
      this.end();
      for (const {reject} of waiting.values()) reject(lost(sentence));
    }

    call(name, ...words) {
      return this.ask({call: name, words});
    }

    // A call of what may never end: before each step Python tells how long it may take.
    attempt(name, ...words) {
      return this.ask({call: name, words, tells: true});
    }

    ask(question) {
      return new Promise((resolve, reject) => {
        this.start();
        this.last += 1;
        this.waiting.set(this.last, {resolve, reject, question});
        this.worker.postMessage({...question, id: this.last});
      });
    }

    heard(data) {
      if ('bytes' in data) {
        this.came = data;
        if (!this.running) this.watch(); // what comes later has a limit of its own
        for (const listener of listeners) listener(data);
        return;
      }
      if (data.again && !data.alone) return this.lose(data.error);
      clearTimeout(this.watching);
      const one = this.waiting.get(data.id);
      clearTimeout(one.timer);
      if ('doing' in data) {
        if (data.seconds) one.timer = setTimeout(() => this.stop(data.id, data.doing), data.seconds * 1000);
        return;
      }
      if (data.over) { // the interpreter itself has come to an end
        this.stop(data.id, 'Your code ended the Python that it ran in.');
        return;
      }
      this.waiting.delete(data.id);
      if ('error' in data) one.reject(data.again ? lost(data.error) : new Error(data.error));
      else {
        this.running = true;
        one.resolve(data.value);
      }
    }

    end() {
      clearTimeout(this.watching);
      this.worker.terminate();
      this.worker = null;
      this.running = false;
      this.came = {bytes: 0, of: 0};
      this.waiting = new Map();
    }

    // End what does not end. Whoever else waits is asked for again.
    stop(id, sentence) {
      const {waiting} = this;
      this.end();
      waiting.get(id).reject(new Error(`${sentence} ${STOPPED}`));
      waiting.delete(id);
      this.call('functions.ready').catch(() => {});
      for (const {resolve, reject, question} of waiting.values()) this.ask(question).then(resolve, reject);
    }
  }

  const book = new Python();
  const yours = new Python(); // runs what readers write: whatever that does, the book's own goes on
  const call = (...words) => book.call(...words);

  // What comes of something; what takes long is said, and why it failed: say(message, failed, again), with `again` where
  // another try may help. Null where it failed for good.
  async function doing(what, say, python = book) {
    for (;;) {
      try {
        return await said(what, say, python);
      } catch (error) {
        if (!error.again) {
          say(error.message, true);
          return null;
        }
        await new Promise(again => say(error.message, true, again));
      }
    }
  }

  async function said(what, say, python) {
    let came = '';
    let slow = false;
    const tell = () => {
      if (slow) say(python.running || !python.worker ? 'One moment …' : came ? `Fetching Python: ${came} …` : 'Starting Python …', false);
    };
    const listener = told => {
      const before = came;
      came = told.bytes < told.of ? howMuch(told) : '';
      if (came !== before) tell();
    };
    const timer = setTimeout(() => { slow = true; tell(); }, SLOW_MS);
    listeners.add(listener);
    try {
      const value = await what();
      if (slow) say('', false);
      return value;
    } finally {
      clearTimeout(timer);
      listeners.delete(listener);
    }
  }

  // A script of the pages. After a failure it is asked for under another address: browsers remember that one failed.
  let failures = 0;
  async function script(name) {
    const address = new URL(name, STATIC);
    if (failures) address.searchParams.set('again', failures);
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(reject, LIMITS.script_ms); });
    try {
      return await Promise.race([import(address), late]);
    } catch (error) {
      failures += 1;
      throw lost(error ? `${name} did not come, or not whole.` : `${name} did not come within ${seconds(LIMITS.script_ms)}.`);
    } finally {
      clearTimeout(timer);
    }
  }

  function made(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  // Say something in its place; where another try may help, with the button for it.
  function tell(place, message, again) {
    place.textContent = message;
    if (!again) return;
    const button = made('button', {type: 'button', className: 'again', textContent: 'Try again'});
    button.addEventListener('click', () => {
      place.tabIndex = -1;
      place.focus(); // the button goes, and whoever pressed it by a key is not to be lost with it
      tell(place, '');
      again();
    });
    place.append(' ', button);
  }

  Object.assign(window.threeloops, {STATIC, FROM_A_FILE, LIMITS, call, book, yours, doing, script, tell, made});
})();
