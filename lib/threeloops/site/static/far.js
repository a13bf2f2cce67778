// How far the reader is: of each part, or chapter, how many of its questions this browser keeps an answer to.
(async () => {
  'use strict';
  const told = document.getElementById('far-told');
  if (!told) return;
  const known = JSON.parse(told.textContent);
  const kept = new Set((await window.threeloops.written().catch(() => [])).map(({place}) => place));
  for (const one of document.querySelectorAll('[data-far]')) {
    const names = known[one.dataset.far];
    const done = names.filter(name => kept.has(name)).length;
    const bar = one.querySelector('progress');
    bar.max = names.length;
    bar.value = done;
    one.querySelector('span').textContent = `${done} of ${names.length}`;
    if (done) one.closest('.far').hidden = false;
  }
})();
