// What the reader answered, predicted and wrote, kept in this browser and nowhere else.
window.threeloops = (() => {
  'use strict';
  const NAME = 'three-loops';
  const ATTEMPTS = 'attempts';
  const KEY = ['session', 'position'];
  const WRITTEN = 'written'; // predictions, and code: each as it was left

  const OPEN_MS = 10_000; // a storage that does not open in so long does not open
  const FULL = 'the storage of this browser is full; free some of it, and try again.';
  const DENIED = 'this browser lets these pages keep nothing: its settings forbid it, or the window is private.';
  const BUSY = 'the storage of this browser does not open; close other windows of these pages, and try again.';
  const sentence = error => new Error(error?.name === 'QuotaExceededError' ? FULL
    : ['SecurityError', 'InvalidStateError', 'TypeError'].includes(error?.name) ? DENIED : error?.message ?? BUSY);

  function asked(request) {
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(sentence(request.error));
    });
  }

  // What was written is written when all of it is: a full storage says so only then.
  function done(transaction) {
    return new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(sentence(transaction.error));
    });
  }

  function made({result}) {
    const there = result.objectStoreNames;
    if (!there.contains(ATTEMPTS)) result.createObjectStore(ATTEMPTS, {keyPath: KEY});
    if (!there.contains(WRITTEN)) result.createObjectStore(WRITTEN, {keyPath: 'place'});
  }

  let opened = null;
  async function open() {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(BUSY)), OPEN_MS); });
    try {
      const request = window.indexedDB.open(NAME, 2);
      request.onupgradeneeded = () => made(request);
      const held = await Promise.race([asked(request), late]);
      const forget = () => { opened = null; };
      held.onversionchange = () => { held.close(); forget(); };
      held.onclose = forget;
      return held;
    } catch (error) {
      throw error instanceof DOMException || error instanceof TypeError ? sentence(error) : error;
    } finally {
      clearTimeout(timer);
    }
  }

  async function store(name, mode) {
    if (!opened) {
      opened = open();
      opened.catch(() => { opened = null; }); // another call tries again
    }
    return (await opened).transaction(name, mode).objectStore(name);
  }

  const all = async () => asked((await store(ATTEMPTS, 'readonly')).getAll());
  const written = async () => asked((await store(WRITTEN, 'readonly')).getAll());
  const left = async place => asked((await store(WRITTEN, 'readonly')).get(place));

  async function leave(place, about) {
    const into = await store(WRITTEN, 'readwrite');
    await Promise.all([asked(into.put({...about, place})), done(into.transaction)]);
  }

  async function clear() {
    for (const name of [ATTEMPTS, WRITTEN]) await asked((await store(name, 'readwrite')).clear());
  }

  // Those already here are left alone; how many were new.
  async function add(attempts) {
    const into = await store(ATTEMPTS, 'readwrite');
    const written = done(into.transaction);
    written.catch(() => {}); // told where it is waited for
    let fresh = 0;
    for (const attempt of attempts) {
      if (await asked(into.getKey(KEY.map(name => attempt[name]))) === undefined) {
        await asked(into.add(attempt));
        fresh += 1;
      }
    }
    await written;
    return fresh;
  }

  const saying = what => (...words) => what(...words).catch(error => { throw error instanceof DOMException ? sentence(error) : error; });
  return Object.fromEntries(Object.entries({all, add, clear, written, left, leave}).map(([name, what]) => [name, saying(what)]));
})();
