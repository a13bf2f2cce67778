// What this browser keeps of the book: what was visited, all of it where the reader asks, and a new edition when it comes.
(() => {
  'use strict';
  const {STATIC, doing, tell, made} = window.threeloops;
  const ROOT = new URL('..', STATIC);
  const AT_ONCE = 4;
  const OPENED_MS = 3000; // a browser now and then holds on to the edition before until its page goes
  const SILENT_MS = 330_000; // a little more than a file may take
  const WHY = location.protocol === 'file:' ? 'These pages are files on this machine already, and open without a network. Served over https, or from localhost, they can be kept in a browser.'
    : !isSecureContext ? 'Over plain http a browser keeps no pages for later, but on localhost. Open these pages over https, or take a chapter along as a PDF.'
    : !('serviceWorker' in navigator) ? 'This browser, or this private window, keeps no pages for later. Another browser may, or a window that is not private.' : '';
  const place = document.getElementById('my-offline');
  const megabytes = count => (count / 1e6).toFixed(1);

  function ask(worker, what) {
    return new Promise((resolve, reject) => {
      const {port1, port2} = new MessageChannel();
      const timer = setTimeout(() => reject(new Error('Nothing came.')), SILENT_MS);
      port1.onmessage = ({data}) => {
        clearTimeout(timer);
        port1.close();
        if ('error' in data) reject(Object.assign(new Error(data.error), data));
        else resolve(data.value);
      };
      worker.postMessage(what, [port2]);
    });
  }

  async function registered() {
    await navigator.serviceWorker.register(new URL('offline.js', ROOT), {scope: ROOT.pathname});
    return navigator.serviceWorker.ready;
  }

  // --- a new edition ---------------------------------------------------------------------------------------

  function offer(registration) {
    const button = made('button', {type: 'button', textContent: 'Open it'});
    button.addEventListener('click', () => {
      registration.waiting?.postMessage({go: true});
      setTimeout(() => location.reload(), OPENED_MS);
    });
    const said = made('p', {className: 'page-failed'}, 'A new edition of this book has arrived. ', button);
    said.setAttribute('role', 'status');
    (document.querySelector('main') ?? document.body).prepend(said);
  }

  function watch(registration) {
    let offered = false;
    const look = () => {
      if (offered || !registration.waiting || !navigator.serviceWorker.controller) return;
      offered = true;
      offer(registration);
    };
    const wait = () => registration.installing?.addEventListener('statechange', look);
    registration.addEventListener('updatefound', wait);
    wait(); // it may be on its way already
    look();
    // Two editions in one page would be neither: every window goes over to the new one.
    let controlled = Boolean(navigator.serviceWorker.controller);
    navigator.serviceWorker.addEventListener('controllerchange', () => {
      if (controlled) location.reload();
      controlled = true;
    });
  }

  // This page and what it shows, also where it came before anything could be kept.
  function visited() {
    const shown = [...document.querySelectorAll('script[src], link[rel=stylesheet], img[src]')].map(one => one.src || one.href);
    return [location.href, ...shown, ...performance.getEntriesByType('resource').map(one => one.name)].filter(one => one.startsWith(ROOT.href));
  }

  // --- the page on which the whole book is kept --------------------------------------------------------------

  function controls(worker) {
    const said = place.querySelector('[role=status]');
    const bar = place.querySelector('progress');
    const [keep, forget] = ['keep', 'forget'].map(name => place.querySelector(`[data-do=${name}]`));
    const saying = what => doing(what, (message, failed, again) => { if (failed) tell(said, message, again); });

    async function show() {
      const {bytes, missing, missingBytes} = await ask(worker, {state: null});
      said.textContent = missing.length ? `${megabytes(bytes - missingBytes)} of ${megabytes(bytes)} MB are in this browser.`
        : `The whole book, ${megabytes(bytes)} MB, is in this browser and opens without a network.`;
      keep.textContent = `Keep the whole book (${megabytes(missingBytes)} MB to fetch)`;
      keep.hidden = !missing.length;
      forget.hidden = missingBytes === bytes;
    }

    async function all() {
      keep.disabled = true;
      try {
        const {bytes, missing, missingBytes} = await ask(worker, {state: null});
        Object.assign(bar, {max: bytes, value: bytes - missingBytes, hidden: false});
        said.textContent = `Fetching ${megabytes(missingBytes)} MB …`;
        await navigator.storage?.persist?.();
        await ask(worker, {whole: null});
        const rest = missing.values();
        await Promise.all(Array.from({length: AT_ONCE}, async () => {
          for (const [name, size] of rest) {
            await ask(worker, {bring: name});
            bar.value += size;
          }
        }));
        await show();
      } catch (error) {
        const why = error.kind === 'QuotaExceededError' ? 'The storage of this browser is full.'
          : error.other ? `${error.message} Load this page anew.`
          : navigator.onLine ? 'The network broke off, or the storage of this browser is denied.' : 'There is no network now.';
        throw Object.assign(new Error(`${why} ${megabytes(bar.value)} of ${megabytes(bar.max)} MB are here and stay.`), {again: true});
      } finally {
        keep.disabled = false;
        bar.hidden = true;
      }
    }

    keep.addEventListener('click', () => saying(all));
    forget.addEventListener('click', () => saying(async () => { await ask(worker, {forget: null}); await show(); }));
    place.querySelector('.drill-form').hidden = false;
    return saying(show);
  }

  async function begin() {
    const registration = await registered();
    watch(registration);
    const keep = () => registration.active.postMessage({visited: visited()});
    if (document.readyState === 'complete') keep();
    else addEventListener('load', keep);
    if (place) await controls(registration.active);
  }

  if (place) place.hidden = false;
  const fail = error => {
    if (!place) return; // whoever reads is not told on every page
    const said = place.querySelector('[role=status]');
    if (WHY) said.textContent = WHY;
    else tell(said, `Nothing can be kept for later now: ${error.message}`, () => begin().catch(fail));
  };
  if (WHY) fail();
  else begin().catch(fail);
})();
