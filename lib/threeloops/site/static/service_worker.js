// The book without a network. One of these belongs to one edition: BOOK, which the build writes before these lines, has
// its name and each of its files as [bytes, SHA-256]. A file of another edition is neither kept nor shown beside it.
'use strict';
const SCOPE = self.registration.scope;
const PREFIX = `three-loops ${SCOPE} `;
const OWN = PREFIX + BOOK.edition;
const WHOLE = `${SCOPE}the-whole-book`; // kept where the reader asked for all of it
const HASH = 'X-SHA-256';
const OTHER_EDITION = 409;
const LIMIT_MS = 300_000; // for one file
const AT_ONCE = 4;
const names = Object.keys(BOOK.files);

class Other extends Error {} // a file that is not of this edition

const kept = async name => (await caches.open(OWN)).match(SCOPE + name);
const keep = async (name, response) => (await caches.open(OWN)).put(SCOPE + name, response);

// The file that an address means: "" is index.html, and some hosts leave ".html" out.
function named(address) {
  const {origin, pathname} = new URL(address);
  const path = (origin + pathname).slice(SCOPE.length);
  return [path, path.replace(/(^|\/)$/, '$1index.html'), `${path}.html`].find(one => Object.hasOwn(BOOK.files, one));
}

async function ours(name, response) {
  if (!response.ok) throw new Other(`${name} is missing from the folder of pages.`);
  const content = await response.arrayBuffer();
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', content));
  if ([...hash].map(byte => byte.toString(16).padStart(2, '0')).join('') !== BOOK.files[name][1]) throw new Other(`${name} is of another edition.`);
  return new Response(content, {headers: {'Content-Type': response.headers.get('Content-Type') ?? '', [HASH]: BOOK.files[name][1]}});
}

async function brought(name) {
  const ask = cache => fetch(SCOPE + name, {cache, signal: AbortSignal.timeout(LIMIT_MS)}).then(response => ours(name, response));
  try {
    return await ask('default');
  } catch (error) {
    if (error instanceof Other) return ask('reload'); // not what a cache on the way still has of an older edition
    throw error;
  }
}

async function inTurn(all, each) {
  const rest = all.values();
  await Promise.all(Array.from({length: AT_ONCE}, async () => { for (const one of rest) await each(one); }));
}

// --- an edition comes, and the one before goes ---------------------------------------------------------

// A new edition is there when it has everything that was kept of the one before. What is the same is not fetched again.
async function filled() {
  const before = (await caches.keys()).filter(name => name.startsWith(PREFIX) && name !== OWN);
  const old = await Promise.all(before.map(name => caches.open(name)));
  const had = new Map();
  for (const store of old) for (const {url} of await store.keys()) had.set(url, await store.match(url));
  const wanted = had.has(WHOLE) ? names : names.filter(name => had.has(SCOPE + name));
  await inTurn(wanted, async name => {
    if (await kept(name)) return;
    const same = had.get(SCOPE + name);
    await keep(name, same?.headers.get(HASH) === BOOK.files[name][1] ? same : await brought(name));
  });
  if (had.has(WHOLE)) await (await caches.open(OWN)).put(WHOLE, new Response(''));
}

async function begin() {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX) && name !== OWN) await caches.delete(name);
  await self.clients.claim();
}

self.addEventListener('install', event => event.waitUntil(filled()));
self.addEventListener('activate', event => event.waitUntil(begin()));

// --- what a page asks for -------------------------------------------------------------------------------

const LOOKS = '<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}body{font:1.1rem/1.5 system-ui;max-width:34rem;margin:3rem auto;padding:0 1rem}button{font:inherit}</style>';
function page(title, words, script = '') {
  const text = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>${title} — Three Loops</title>${LOOKS}</head><body><main><h1>${title}</h1>${words}</main>${script}</body></html>`;
  return new Response(text, {headers: {'Content-Type': 'text/html; charset=utf-8'}});
}
const absent = () => page('Not kept', `<p>There is no network, and this page is not kept in this browser. <a href="${SCOPE}index.html">The first page</a> leads to what is;
  <a href="${SCOPE}offline.html">Offline</a> keeps the whole book.</p><p><button onclick="location.reload()">Try again</button></p>`);
const changed = () => page('A new edition', `<p role="status">A new edition of this book is there. Your browser fetches what it has kept, and then opens this page.</p>
  <p id="else" hidden>It could not be opened yet. <button onclick="location.reload()">Try again</button> <button id="go">Read it without what was kept</button></p>`,
`<script>
  const fail = () => { document.getElementById('else').hidden = false; };
  const held = ${JSON.stringify(PREFIX + 'held ' + BOOK.edition)}; // a browser now and then holds on to the edition before until its page goes
  const loadAnew = () => {
    try {
      if (sessionStorage.getItem(held)) return fail(); // and now and then even then: no page loads itself for ever
      sessionStorage.setItem(held, 'once');
    } catch { return fail(); }
    setTimeout(() => location.reload(), 3000);
  };
  const look = worker => {
    if (worker.state === 'installed') {
      worker.postMessage({go: true});
      loadAnew();
    }
    if (worker.state === 'activated') location.reload();
    if (worker.state === 'redundant') fail();
  };
  const follow = worker => {
    if (!worker) return;
    worker.addEventListener('statechange', () => look(worker));
    look(worker);
  };
  navigator.serviceWorker.ready.then(registration => {
    registration.addEventListener('updatefound', () => follow(registration.installing));
    follow(registration.installing); // it may be on its way already, or have come before this page could listen
    follow(registration.waiting);
    const {port1, port2} = new MessageChannel();
    port1.onmessage = ({data}) => { if (data.value !== ${JSON.stringify(BOOK.edition)}) location.reload(); };
    registration.active.postMessage({edition: null}, [port2]);
    setTimeout(fail, 15000);
    document.getElementById('go').onclick = async () => {
      await registration.unregister();
      for (const name of await caches.keys()) if (name.startsWith(${JSON.stringify(PREFIX)})) await caches.delete(name);
      location.reload();
    };
    registration.update().catch(fail);
  });
</script>`);

async function answered(event, name) {
  const there = await kept(name).catch(() => undefined); // a storage that is denied holds nothing
  if (there) return there;
  const isPage = event.request.mode === 'navigate';
  try {
    const response = await brought(name);
    event.waitUntil(keep(name, response.clone()).catch(() => {})); // whoever reads goes on, also where nothing more fits
    return response;
  } catch (error) {
    if (!(error instanceof Other)) return isPage ? absent() : Response.error();
    self.registration.update().catch(() => {});
    return isPage ? changed() : new Response('', {status: OTHER_EDITION});
  }
}

// Python is large: its bytes go on as they come, and the page holds them to their hashes.
async function streamed(event, name) {
  const there = await kept(name).catch(() => undefined);
  if (there) return there;
  const response = await fetch(SCOPE + name, {cache: event.request.cache});
  const copy = response.clone();
  event.waitUntil(ours(name, copy).then(whole => keep(name, whole)).catch(() => {}));
  return response;
}

self.addEventListener('fetch', event => {
  const {request} = event;
  if (request.method !== 'GET' || !request.url.startsWith(SCOPE)) return;
  const name = named(request.url);
  if (!name) {
    if (request.mode === 'navigate') event.respondWith(fetch(request).catch(absent));
    return;
  }
  event.respondWith(name.startsWith('_static/python/') ? streamed(event, name) : answered(event, name));
});

// --- what a page says -----------------------------------------------------------------------------------

async function state() {
  const store = await caches.open(OWN);
  const here = new Set((await store.keys()).map(({url}) => url));
  const bytes = all => all.reduce((sum, name) => sum + BOOK.files[name][0], 0);
  const missing = names.filter(name => !here.has(SCOPE + name));
  return {bytes: bytes(names), missing: missing.map(name => [name, BOOK.files[name][0]]), missingBytes: bytes(missing)};
}

async function bring(name) {
  if (!await kept(name)) await keep(name, await brought(name));
}

const DOES = {
  state,
  bring,
  visited: addresses => inTurn([...new Set(addresses.map(named).filter(Boolean))], name => bring(name).catch(() => {})),
  whole: async () => { await (await caches.open(OWN)).put(WHOLE, new Response('')); },
  forget: async () => { await caches.delete(OWN); },
  edition: () => BOOK.edition,
  go: () => self.skipWaiting(),
};

self.addEventListener('message', event => {
  const [[name, words]] = Object.entries(event.data);
  const port = event.ports[0];
  event.waitUntil(Promise.resolve(DOES[name](words)).then(
    value => port?.postMessage({value}),
    error => port?.postMessage({error: error.message, kind: error.name, other: error instanceof Other}),
  ));
});
