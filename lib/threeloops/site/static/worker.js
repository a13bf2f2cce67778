// Python, beside the page: it is fetched when the first question comes, and answers one call after another.
// Messages in: {id, call, words}, with {tells} where the call may never end.
// Messages out: {bytes, of} while it is fetched; {id, doing, seconds} before a step that may take so long; {id, value} or
// {id, error} for a call, with {again} where another try may help, and {alone} where Python itself is there and goes on;
// {id, over} when Python itself has come to an end.

const FOLDER = new URL('python/', self.location.href);
const MORE = 'more.zip'; // the rest of the book: what no answer needs
const LIMIT_MS = 120_000; // for it to come
const ANSWERS = new Set(['site.answering', 'site.functions', 'site.remembering']);
const OTHER_EDITION = 409; // what offline.js answers for a file that is not of its edition
const ownFetch = self.fetch.bind(self);
let came = 0;
let all = 0;

class Lost extends Error {} // a file that did not come, or not whole

// One file, whole. What comes is counted, so that the page can say how much has come.
async function fetched(name, options) {
  const response = await ownFetch(new URL(name, FOLDER), options).catch(() => { throw new Lost(`${name} did not come.`); });
  if (response.status === OTHER_EDITION) throw new Lost(`${name} is of another edition than this page; load the page anew.`);
  if (!response.ok) throw new Lost(`${name} is missing from the folder of pages.`);
  const parts = [];
  let length = 0;
  try {
    for (const reader = response.body.getReader(); ;) {
      const {done, value} = await reader.read();
      if (done) return new Blob(parts);
      parts.push(value);
      length += value.byteLength;
      came += value.byteLength;
      self.postMessage({bytes: came, of: all});
    }
  } catch {
    came -= length;
    throw new Lost(`${name} broke off in the middle.`);
  }
}

// Whether a file is the one that belongs to this edition. Without https there are no hashes, and its size has to do.
async function isRight(blob, {bytes, sha256}) {
  if (blob.size !== bytes) return false;
  if (!self.crypto.subtle) return true;
  const hash = new Uint8Array(await self.crypto.subtle.digest('SHA-256', await blob.arrayBuffer()));
  return [...hash].map(byte => byte.toString(16).padStart(2, '0')).join('') === sha256;
}

async function file(name, options = {}) {
  const first = await fetched(name, options);
  const expected = (await about).files[name];
  if (await isRight(first, expected)) return first;
  came -= first.size;
  const second = await fetched(name, {...options, cache: 'reload'}); // not what a cache on the way still has of an older edition
  if (await isRight(second, expected)) return second;
  throw new Lost(`${name} came damaged.`);
}

let about;
const coming = {};
// The interpreter asks for its files by name, when all of them are here. Its program lies there packed.
const PACKED = ['pyodide.asm.mjs', 'pyodide.asm.wasm'];

async function unpacked(name, type) {
  const stream = (await coming[`${name}.gz`]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream, {headers: {'Content-Type': type}});
}

self.fetch = async address => {
  const name = new URL(address.url ?? address, FOLDER).pathname.split('/').pop();
  if (PACKED.includes(name)) return unpacked(name, 'application/wasm');
  return coming[name] ? new Response(await coming[name]) : ownFetch(address);
};

async function module(blob) {
  const address = URL.createObjectURL(new Blob([await blob.arrayBuffer()], {type: 'text/javascript'}));
  return import(address);
}

async function told() {
  try {
    return JSON.parse(await (await fetched('about.json')).text());
  } catch (error) {
    throw error instanceof Lost ? error : new Lost('about.json came damaged.');
  }
}

async function begin() {
  about = told();
  for (const name of ['pyodide.mjs', ...PACKED.map(one => `${one}.gz`), 'standard.zip', 'book.zip']) {
    coming[name] = file(name);
    coming[name].catch(() => {}); // told where it is waited for
  }
  const {bytes, lock} = await about;
  all = bytes;
  self.postMessage({bytes: came, of: all}); // where all the others were here before it, nothing more would tell
  await Promise.all(Object.values(coming)); // a start that misses a file would never end
  const {loadPyodide} = await module(await coming['pyodide.mjs']);
  const program = await (await unpacked('pyodide.asm.mjs', 'text/javascript')).blob();
  const python = await loadPyodide({
    createPyodideModule: (await module(program)).default,
    indexURL: FOLDER.href,
    packageBaseUrl: FOLDER.href,
    stdLibURL: new URL('standard.zip', FOLDER).href,
    lockFileContents: lock,
  });
  python.unpackArchive(await (await coming['book.zip']).arrayBuffer(), 'zip', {extractDir: '/book'});
  python.runPython("import sys; sys.path.insert(0, '/book')");
  return python;
}

let python = null;
let whole = null;

// Where it does not come, Python goes on without it, and the next call asks for it again.
async function rest() {
  const got = await file(MORE, {signal: AbortSignal.timeout(LIMIT_MS)}).catch(async error => {
    whole = null;
    await python; // where that fails too, everything is asked for again
    throw Object.assign(error, {alone: true});
  });
  const archive = await got.arrayBuffer();
  const interpreter = await python;
  interpreter.unpackArchive(archive, 'zip', {extractDir: '/book'});
  interpreter.runPython('import importlib; importlib.invalidate_caches()');
}

// A call is a function of answering, of another module of site ("remembering.report"), or of another room
// ("commands.serve.on_page.answered").
self.onmessage = async ({data: {id, call, words, tells}}) => {
  const tell = (sentence, seconds) => self.postMessage({id, doing: sentence, seconds});
  try {
    python ??= begin();
    const path = call.split('.');
    const name = path.pop();
    const module = path.length > 1 ? path.join('.') : `site.${path[0] ?? 'answering'}`;
    if (!ANSWERS.has(module)) {
      whole ??= rest();
      await whole;
    }
    const library = (await python).pyimport(`threeloops.${module}`);
    self.postMessage({id, value: JSON.parse(library[name](...words, ...(tells ? [tell] : [])))});
  } catch (error) {
    // of a traceback, the sentence at its end
    const sentence = String(error.message ?? error).trim().split('\n').at(-1).replace(/^[\w.]*Error: /, '');
    self.postMessage(error.pyodide_fatal_error ? {id, over: true} : {id, error: sentence, again: error instanceof Lost, alone: error.alone});
  }
};
