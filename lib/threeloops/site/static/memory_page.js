// The page of the memory: how it goes, what is due, take it along, bring it in, delete it.
(() => {
  'use strict';
  const page = document.getElementById('my-memory');
  if (!page) return;
  const {all, add, clear, written, call, doing, tell, made} = window.threeloops;
  const said = page.querySelector('[role=status]');
  const shown = page.querySelector('#memory-report');
  const button = name => page.querySelector(`[data-do=${name}]`);
  page.hidden = false;

  const counted = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

  function table(caption, head, rows) {
    return made('table', {className: 'table'}, made('caption', {textContent: caption}),
      made('thead', {}, made('tr', {}, ...head.map(words => made('th', {scope: 'col', textContent: words})))),
      made('tbody', {}, ...rows.map(row => made('tr', {}, ...row.map(cell => made('td', {}, cell))))));
  }

  async function count() {
    const [attempts, texts] = [await all(), (await written()).filter(({place}) => !/^(?:right |room sitting$)/.test(place))]; // those are attempts, too
    shown.replaceChildren();
    const beside = texts.length ? `, and ${counted(texts.length, 'prediction or function', 'predictions and functions')}` : '';
    return `${counted(attempts.length, 'attempt')} in this browser${beside}.`;
  }

  async function report() {
    const told = await call('remembering.report', JSON.stringify(await all()));
    const due = told.due.filter(one => one.now);
    const links = due.map(one => [made('a', {href: one.page, textContent: one.title}), one.date]);
    shown.replaceChildren(
      table('By topic', ['topic', 'right at first', 'readiness'],
        told.topics.map(one => [one.topic.replaceAll('_', ' '), `${one.right} of ${one.answered}`, one.readiness])),
      table('Due today', ['idea', 'since'], links));
    const next = told.due.find(one => !one.now);
    return `${counted(due.length, 'idea')} due today${next ? `; the next one on ${next.date}` : ''}.`;
  }

  async function take() {
    const text = await call('remembering.exported', JSON.stringify(await all()));
    const link = made('a', {href: URL.createObjectURL(new Blob([text], {type: 'application/json'})), download: 'three-loops-attempts.json'});
    link.click();
    URL.revokeObjectURL(link.href);
    return 'Written to three-loops-attempts.json. `python3 book.py history import FILE` takes it in at the desk.';
  }

  async function bring(file) {
    const attempts = await call('remembering.taken_in', file.name, await file.text());
    const fresh = await add(attempts);
    return `${counted(fresh, 'attempt')} taken in, ${attempts.length - fresh} here already.`;
  }

  async function forget() {
    if (!confirm('Delete every attempt, prediction and function in this browser? It cannot be undone.')) return 'Nothing was deleted.';
    await clear();
    shown.replaceChildren();
    return 'Everything is deleted. This browser keeps nothing of yours now.';
  }

  async function saying(what) {
    said.textContent = 'A moment …';
    const came = await doing(what, (message, failed, again) => tell(said, message, again));
    if (came !== null) said.textContent = came;
  }

  button('report').addEventListener('click', () => saying(report));
  button('export').addEventListener('click', () => saying(take));
  button('delete').addEventListener('click', () => saying(forget));
  page.querySelector('input[type=file]').addEventListener('change', ({target}) => {
    const [file] = target.files;
    target.value = '';
    if (file) saying(() => bring(file));
  });
  saying(count);
})();
