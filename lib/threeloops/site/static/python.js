// Python for whatever on the page asks for it: it comes with the first call, and stays until the page is left.
(() => {
  'use strict';
  const STATIC = new URL('.', document.currentScript.src);
  const SLOW_MS = 400; // a wait that has to be explained
  const FROM_A_FILE = 'A browser runs nothing from a file. In the folder of these pages, run `python3 -m http.server`, and open http://localhost:8000.';
  const STOPPED = 'It was stopped, and Python starts again; what you wrote is still here.';
  const megabytes = count => (count / 1e6).toFixed(1);
  const listeners = new Set(); // told how much has come

  // One interpreter beside the page, which answers one call after another.
  class Python {
    worker = null;
    running = false; // whether it has answered
    last = 0;
    waiting = new Map();

    start() {
      if (this.worker) return;
      if (location.protocol === 'file:') throw new Error(FROM_A_FILE);
      this.worker = new Worker(new URL('worker.js', STATIC), {type: 'module'});
      this.worker.onmessage = ({data}) => this.heard(data);
      this.worker.onerror = event => {
        const {waiting} = this;
        this.end();
        for (const {reject} of waiting.values()) reject(new Error(event.message || 'Python could not be started here.'));
      };
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
        for (const listener of listeners) listener(data);
        return;
      }
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
      if ('error' in data) one.reject(new Error(data.error));
      else {
        this.running = true;
        one.resolve(data.value);
      }
    }

    end() {
      this.worker.terminate();
      this.worker = null;
      this.running = false;
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

  // What comes of something; what takes long is said, and why it failed: say(message, failed). Null where it failed.
  async function doing(what, say, python = book) {
    let came = '';
    let slow = false;
    const tell = () => {
      if (slow) say(python.running ? 'One moment …' : came ? `Fetching Python: ${came} MB …` : 'Starting Python …', false);
    };
    const listener = ({bytes, of}) => {
      came = bytes < of ? `${megabytes(bytes)} of ${megabytes(of)}` : '';
      tell();
    };
    const timer = setTimeout(() => { slow = true; tell(); }, SLOW_MS);
    listeners.add(listener);
    try {
      const value = await what();
      if (slow) say('', false);
      return value;
    } catch (error) {
      say(error.message, true);
      return null;
    } finally {
      clearTimeout(timer);
      listeners.delete(listener);
    }
  }

  function made(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  Object.assign(window.threeloops, {STATIC, FROM_A_FILE, call, book, yours, doing, made});
})();
