// What is looked for is found as one types. The index comes with the first letter.
(() => {
  'use strict';
  const {STATIC, made, script, tell} = window.threeloops;
  const CALM_MS = 120; // after the last letter
  const LIMIT_MS = 60_000; // for the index to come
  const NONE = 'Nothing in the book is called so. The page of terms has its words from A to Z.';
  let coming = null;

  async function fetched() {
    const finding = await script('finding.js');
    const response = await fetch(new URL('search.json', STATIC), {signal: AbortSignal.timeout(LIMIT_MS)}).catch(() => null);
    if (!response?.ok) throw new Error(`The list of what stands where did not come.${navigator.onLine ? '' : ' There is no network now.'}`);
    const index = finding.read(await response.json());
    return query => finding.found(index, query);
  }

  function finder() {
    coming ??= fetched();
    coming.catch(() => { coming = null; }); // another try asks again
    return coming;
  }

  const address = ({page, anchor}) => new URL(`../${page}.html${anchor ? `#${anchor}` : ''}`, STATIC).href;

  function shown({part, page, places}) {
    const [top, ...rest] = [...places].sort((one, other) => Boolean(one.anchor) - Boolean(other.anchor));
    const heads = top.anchor ? [top, ...rest] : rest;
    const list = made('ul', {}, ...heads.map(place => made('li', {}, made('a', {href: address(place), textContent: place.heading}),
      made('p', {className: 'found-said', textContent: place.said}))));
    return made('li', {}, made('a', {className: 'found-part', href: address({page}), textContent: part}),
      ...(heads.length ? [list] : [made('p', {className: 'found-said', textContent: top.said})]));
  }

  function begin(form) {
    const field = form.querySelector('input[type=search]');
    const said = made('p', {className: 'found-count'});
    said.setAttribute('role', 'status');
    const list = made('ol', {className: 'found'});
    form.after(said, list);
    let timer;

    async function look() {
      const query = field.value.trim();
      if (!query) {
        said.textContent = '';
        list.replaceChildren();
        return;
      }
      if (!coming) said.textContent = 'A moment …';
      try {
        const find = await finder();
        if (query !== field.value.trim()) return; // another letter has come
        const pages = find(query);
        list.replaceChildren(...pages.map(shown));
        said.textContent = pages.length ? `${pages.length} ${pages.length === 1 ? 'page' : 'pages'}, the likeliest first` : NONE;
      } catch (error) {
        tell(said, error.message, look);
      }
    }

    field.addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(look, CALM_MS);
    });
    // the list stands there already: Enter opens what is on top
    form.addEventListener('submit', event => {
      event.preventDefault();
      clearTimeout(timer);
      look().then(() => list.querySelector('a')?.[form.closest('dialog') ? 'click' : 'focus']());
    });
    const asked = form.closest('dialog') ? null : new URLSearchParams(location.search).get('q');
    if (asked) {
      field.value = asked;
      look();
    }
  }

  for (const form of document.querySelectorAll('form.bd-search')) begin(form);
})();
