// The first script of every page, within it: what stands in for a storage that is denied, and what says that a script
// or a style of the page did not come.
(() => {
  'use strict';
  try {
    window.localStorage.getItem('theme');
  } catch { // the theme's own scripts would end here
    const held = new Map();
    const stand = {getItem: key => held.get(key) ?? null, setItem: (key, value) => { held.set(key, String(value)); }, removeItem: key => { held.delete(key); }};
    Object.defineProperty(window, 'localStorage', {value: stand});
  }

  const LIMIT_MS = 30_000;
  let told = false;
  function tell(sentence) {
    if (told) return;
    told = true;
    const place = document.createElement('p');
    place.className = 'page-failed';
    place.setAttribute('role', 'alert');
    const button = document.createElement('button');
    button.textContent = 'Try again';
    button.addEventListener('click', () => location.reload());
    place.append(`${sentence} The page can be read; what it asks and moves may not work. `, button);
    (document.querySelector('main') ?? document.body).prepend(place);
  }
  const ready = what => (document.body ? what() : document.addEventListener('readystatechange', what, {once: true}));
  addEventListener('error', ({target}) => {
    const address = target instanceof HTMLScriptElement ? target.src : target instanceof HTMLLinkElement ? target.href : '';
    if (address && location.protocol !== 'file:') ready(() => tell(`${new URL(address).pathname.split('/').pop()} did not come.`));
  }, {capture: true});
  setTimeout(() => {
    if (document.readyState === 'loading') ready(() => tell(`Part of this page did not come within ${LIMIT_MS / 1000} seconds.`));
  }, LIMIT_MS);
})();
