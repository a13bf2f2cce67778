// Python for whatever on the page asks for it: it comes with the first call, and stays until the page is left.
(() => {
  'use strict';
  const STATIC = new URL('.', document.currentScript.src);
  const SLOW_MS = 400; // a wait that has to be explained
  const FROM_A_FILE = 'A browser runs nothing from a file. In the folder of these pages, run `python3 -m http.server`, and open http://localhost:8000.';
  const megabytes = count => (count / 1e6).toFixed(1);

  let worker = null;
  let running = false; // whether it has answered
  let last = 0;
  const waiting = new Map();
  const listeners = new Set(); // told how much has come

  function python() {
    if (worker) return worker;
    if (location.protocol === 'file:') throw new Error(FROM_A_FILE);
    worker = new Worker(new URL('worker.js', STATIC), {type: 'module'});
    worker.onmessage = ({data}) => {
      if ('bytes' in data) {
        for (const listener of listeners) listener(data);
        return;
      }
      const {resolve, reject} = waiting.get(data.id);
      waiting.delete(data.id);
      if ('error' in data) reject(new Error(data.error));
      else {
        running = true;
        resolve(data.value);
      }
    };
    worker.onerror = event => {
      for (const {reject} of waiting.values()) reject(new Error(event.message || 'Python could not be started here.'));
      waiting.clear();
      worker = null;
      running = false;
    };
    return worker;
  }

  function call(name, ...words) {
    return new Promise((resolve, reject) => {
      const to = python();
      last += 1;
      waiting.set(last, {resolve, reject});
      to.postMessage({id: last, call: name, words});
    });
  }

  // What comes of something; what takes long is said, and why it failed: say(message, failed). Null where it failed.
  async function doing(what, say) {
    let came = '';
    let slow = false;
    const tell = () => {
      if (slow) say(running ? 'One moment …' : came ? `Fetching Python: ${came} MB …` : 'Starting Python …', false);
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

  Object.assign(window.threeloops, {STATIC, FROM_A_FILE, call, doing, made});
})();
