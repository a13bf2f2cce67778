// What the reader answered, predicted and wrote, kept in this browser and nowhere else.
window.threeloops = (() => {
  'use strict';
  const NAME = 'three-loops';
  const ATTEMPTS = 'attempts';
  const KEY = ['session', 'position'];
  const WRITTEN = 'written'; // predictions, and code: each as it was left

  function asked(request) {
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }

  function made({result}) {
    const there = result.objectStoreNames;
    if (!there.contains(ATTEMPTS)) result.createObjectStore(ATTEMPTS, {keyPath: KEY});
    if (!there.contains(WRITTEN)) result.createObjectStore(WRITTEN, {keyPath: 'place'});
  }

  let opened = null;
  async function store(name, mode) {
    if (!opened) {
      const request = indexedDB.open(NAME, 2);
      request.onupgradeneeded = () => made(request);
      opened = asked(request);
      opened.then(held => { held.onversionchange = () => held.close(); }, () => { opened = null; });
    }
    return (await opened).transaction(name, mode).objectStore(name);
  }

  const all = async () => asked((await store(ATTEMPTS, 'readonly')).getAll());
  const written = async () => asked((await store(WRITTEN, 'readonly')).getAll());
  const left = async place => asked((await store(WRITTEN, 'readonly')).get(place));
  const leave = async (place, about) => asked((await store(WRITTEN, 'readwrite')).put({...about, place}));

  async function clear() {
    for (const name of [ATTEMPTS, WRITTEN]) await asked((await store(name, 'readwrite')).clear());
  }

  // Those already here are left alone; how many were new.
  async function add(attempts) {
    const into = await store(ATTEMPTS, 'readwrite');
    let fresh = 0;
    for (const attempt of attempts) {
      if (await asked(into.getKey(KEY.map(name => attempt[name]))) === undefined) {
        await asked(into.add(attempt));
        fresh += 1;
      }
    }
    return fresh;
  }

  return {all, add, clear, written, left, leave};
})();
