// The page that sizes a service: its fields go to Python in the browser, and the working comes back.
(() => {
  'use strict';
  const page = document.getElementById('my-serving');
  if (!page) return;
  const {yours, doing, tell, made} = window.threeloops;
  const LARGEST = 16 * 2 ** 20; // bytes of a config.json, as models/files/config_file.py has it
  const OWN = 'own'; // the value of the reader's own file in the list of models
  const form = page.querySelector('form');
  const said = page.querySelector('[role=status]');
  const shown = page.querySelector('#serving-answer');
  const models = form.elements['--model'];
  const button = form.querySelector('button');
  let own = null; // {name, config}: a letter a byte
  page.hidden = false;

  function say(message, wrong) {
    said.className = wrong ? 'drill-said drill-wrong' : 'drill-said';
    said.textContent = message;
  }

  // --- a config.json of the reader's -----------------------------------------------------------------------

  async function take(file) {
    if (file.size > LARGEST) {
      say(`${file.name} has ${Math.ceil(file.size / 1e6)} MB; give the config.json of the model, which is some kilobytes.`, true);
      return;
    }
    let bytes;
    try {
      bytes = new Uint8Array(await file.arrayBuffer());
    } catch { // a folder's files are not handed over with it
      say(`${file.name} cannot be read as a file; if it is a folder, give the config.json in it.`, true);
      return;
    }
    own = {name: file.name, config: Array.from(bytes, byte => String.fromCharCode(byte)).join('')};
    models.querySelector(`[value=${OWN}]`)?.remove();
    models.prepend(made('option', {value: OWN, textContent: `${file.name}, your own`}));
    models.value = OWN;
    shown.replaceChildren();
    say(own.config ? `${file.name} is the model now.` : `${file.name} is empty; give the config.json of a model.`, !own.config);
  }

  form.querySelector('input[type=file]').addEventListener('change', ({target}) => {
    const [file] = target.files;
    target.value = '';
    if (file) take(file);
  });
  const over = on => page.classList.toggle('serving-over', on);
  page.addEventListener('dragover', event => { event.preventDefault(); over(true); });
  page.addEventListener('dragleave', () => over(false));
  page.addEventListener('drop', event => {
    event.preventDefault();
    over(false);
    const [file] = event.dataTransfer.files;
    if (file) take(file);
  });

  // --- the answer ------------------------------------------------------------------------------------------

  function asked() {
    const fields = Object.fromEntries(new FormData(form));
    if (models.value === OWN) delete fields['--model'];
    return [JSON.stringify(fields), ...models.value === OWN ? [own.name, own.config] : ['', '']];
  }

  const listed = pairs => made('dl', {}, ...pairs.flatMap(([name, ...words]) => [
    made('dt', {textContent: name}), ...words.map(one => made('dd', {textContent: one}))]));
  const folded = (title, inside) => made('details', {}, made('summary', {textContent: title}), inside);
  const several = sentences => made('ul', {}, ...sentences.map(one => made('li', {textContent: one})));

  function table([head, ...rows]) {
    const cells = (tag, row) => row.map(words => made(tag, {textContent: words, ...tag === 'th' ? {scope: 'col'} : {}}));
    return made('div', {className: 'pst-scrollable-table-container'}, made('table', {className: 'table'},
      made('caption', {textContent: 'A row for each layout'}), made('thead', {}, made('tr', {}, ...cells('th', head))),
      made('tbody', {}, ...rows.map(row => made('tr', {}, ...cells('td', row))))));
  }

  function show(told) {
    const lines = told.lines.map(([name, formula, numbers, value]) => [name, `= ${formula}`, `= ${numbers}`, `→ ${value}`]);
    shown.replaceChildren(
      ...told.table.length ? [table(told.table)] : [],
      listed(told.reasons),
      ...told.engine.flatMap(([name, line]) => [made('p', {textContent: `${name}:`}), made('pre', {textContent: line})]),
      folded('What went in', listed(told.inputs)),
      folded('The working, line by line', listed(lines)),
      folded('What is assumed, and from where', made('div', {}, several(told.assumes), several(told.sources))),
      made('p', {textContent: 'The same at the desk:'}), made('pre', {textContent: told.command}));
  }

  form.addEventListener('submit', async event => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    shown.replaceChildren();
    say('Working it out …');
    const words = asked();
    const told = await doing(() => yours.attempt('commands.serve.on_page.answered', ...words),
      (message, failed, again) => {
        say('', failed);
        tell(said, message || 'Working it out …', again);
      }, yours);
    button.disabled = false;
    if (!told) return;
    say(told.refused ?? told.conclusion, 'refused' in told);
    if (!('refused' in told)) show(told);
  });
})();
