// What the reader answered, kept in this browser and nowhere else.
window.threeloops = (() => {
  'use strict';
  const NAME = 'three-loops';
  const STORE = 'attempts';
  const KEY = ['session', 'position'];

  function asked(request) {
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }

  let opened = null;
  async function store(mode) {
    opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(NAME, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, {keyPath: KEY});
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    return (await opened).transaction(STORE, mode).objectStore(STORE);
  }

  const all = async () => asked((await store('readonly')).getAll());
  const clear = async () => asked((await store('readwrite')).clear());

  // Those already here are left alone; how many were new.
  async function add(attempts) {
    const into = await store('readwrite');
    let fresh = 0;
    for (const attempt of attempts) {
      if (await asked(into.getKey(KEY.map(name => attempt[name]))) === undefined) {
        await asked(into.add(attempt));
        fresh += 1;
      }
    }
    return fresh;
  }

  return {all, add, clear};
})();
