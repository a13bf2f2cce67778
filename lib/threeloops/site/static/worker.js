// Python, beside the page: it is fetched when the first question comes, and answers one call after another.
// Messages in: {id, call, words}, with {tells} where the call may never end.
// Messages out: {bytes, of} while it is fetched; {id, doing, seconds} before a step that may take so long; {id, value} or
// {id, error} for a call; {id, over} when Python itself has come to an end.

const FOLDER = new URL('python/', self.location.href);
const ownFetch = self.fetch.bind(self);
let came = 0;
let all = 0;

// What is fetched is counted, so that the page can say how much has come.
function counted(response) {
  const count = new TransformStream({
    transform(chunk, controller) {
      came += chunk.byteLength;
      self.postMessage({bytes: came, of: all});
      controller.enqueue(chunk);
    },
  });
  return response.body.pipeThrough(count);
}

async function bytes(name) {
  const response = await ownFetch(new URL(name, FOLDER));
  if (!response.ok) throw new Error(`${name} is missing from the folder of pages`);
  return counted(response);
}

// All of it comes at once; the interpreter asks for one after the other, by name. Its program lies there packed.
const coming = {};
const PACKED = ['pyodide.asm.mjs', 'pyodide.asm.wasm'];

async function unpacked(name, type) {
  const stream = (await coming[`${name}.gz`]).pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream, {headers: {'Content-Type': type}});
}

self.fetch = async address => {
  const name = new URL(address.url ?? address, FOLDER).pathname.split('/').pop();
  return PACKED.includes(name) ? unpacked(name, 'application/wasm') : new Response(await (coming[name] ?? bytes(name)));
};

async function program() {
  const source = await (await unpacked('pyodide.asm.mjs', 'text/javascript')).blob();
  return (await import(URL.createObjectURL(source))).default;
}

async function begin() {
  for (const name of [...PACKED.map(one => `${one}.gz`), 'standard.zip', 'book.zip']) {
    coming[name] = bytes(name);
    coming[name].catch(() => {}); // told where it is waited for
  }
  const about = await (await ownFetch(new URL('about.json', FOLDER))).json();
  all = about.bytes;
  const book = coming['book.zip'].then(stream => new Response(stream).arrayBuffer());
  const {loadPyodide} = await import(new URL('pyodide.mjs', FOLDER));
  const python = await loadPyodide({
    createPyodideModule: await program(),
    indexURL: FOLDER.href,
    packageBaseUrl: FOLDER.href,
    stdLibURL: new URL('standard.zip', FOLDER).href,
    lockFileContents: about.lock,
  });
  python.unpackArchive(await book, 'zip', {extractDir: '/book'});
  python.runPython("import sys; sys.path.insert(0, '/book')");
  return python;
}

let python = null;

// A call is a function of answering, or of another module: "remembering.report".
self.onmessage = async ({data: {id, call, words, tells}}) => {
  const tell = (sentence, seconds) => self.postMessage({id, doing: sentence, seconds});
  try {
    python ??= begin().catch(error => {
      python = null; // another call tries again
      throw error;
    });
    const [name, module = 'answering'] = call.split('.').reverse();
    const library = (await python).pyimport(`threeloops.site.${module}`);
    self.postMessage({id, value: JSON.parse(library[name](...words, ...(tells ? [tell] : [])))});
  } catch (error) {
    // of a traceback, the sentence at its end
    const sentence = String(error.message ?? error).trim().split('\n').at(-1).replace(/^[\w.]*Error: /, '');
    self.postMessage(error.pyodide_fatal_error ? {id, over: true} : {id, error: sentence});
  }
};
