// The end of a drill set: how its questions went, with the mistakes that were made.
(() => {
  'use strict';
  const {Question, all, book, call, doing, made, tell} = window.threeloops;
  const keys = [...document.querySelectorAll('.drill[data-drill]:not(#any-drill)')].map(one => one.dataset.drill);
  if (keys.length < 2 || document.querySelector('article .drill[data-outcome]') || !/\/drills\/[^/]+$/.test(location.pathname)) return;
  const said = made('p');
  said.setAttribute('role', 'status');
  const list = made('ul');
  const button = made('button', {type: 'button', className: 'again', textContent: 'How it went'});
  document.querySelector('article').append(made('section', {className: 'set-end'},
    made('h2', {textContent: 'The end of this set'}), said, list, made('p', {}, button)));

  async function show() {
    await Question.kept; // the answer that ends the set counts, too
    const told = await doing(async () => call('remembering.summary', JSON.stringify(await all()), JSON.stringify(keys)),
      (message, failed, again) => tell(said, message, again));
    if (!told) return;
    said.textContent = told.said;
    list.replaceChildren(...told.missed.map(one => made('li', {},
      made('a', {href: `../practise.html?drill=${encodeURIComponent(one.idea)}`, textContent: one.title}), `: ${one.told}`)));
  }
  button.addEventListener('click', show);
  // with the last question answered it comes by itself; on a later visit it is not worth fetching Python for
  document.addEventListener('threeloops:standing', ({detail}) => { if (detail.answered === detail.of && book.running) show(); });
})();
