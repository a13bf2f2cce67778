// What is wider than its place shows that there is more, on the side where it is; and the list of a page's headings closes
// once one is chosen.
(() => {
  'use strict';
  const WIDE = 'article pre, .formula, .pst-scrollable-table-container, .cell_output > .output, .image-reference, .tl-chart, .tl-table, .run-figure';
  const known = new Set();
  const SLACK = 2; // pixels that nobody misses

  // All are measured before one is marked: a browser that measures after each mark lays the page out each time.
  function mark(all) {
    const measured = all.map(one => [one, one.scrollWidth - one.clientWidth, one.scrollLeft]);
    for (const [one, over, at] of measured) {
      one.classList.toggle('more-right', over > SLACK && at < over - SLACK);
      one.classList.toggle('more-left', over > SLACK && at > SLACK);
      // the keyboard reaches what it is to push along; a link is reached anyway
      if (over > SLACK && one.tabIndex < 0) one.tabIndex = 0;
    }
  }

  const sizes = new ResizeObserver(seen => mark(seen.map(({target}) => target)));
  function look() {
    const all = [...document.querySelectorAll(WIDE)];
    mark(all.filter(one => known.has(one)));
    for (const one of all.filter(each => !known.has(each))) {
      known.add(one);
      sizes.observe(one);
    }
  }
  let waiting = 0;
  const later = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; look(); }); };
  document.addEventListener('scroll', event => { if (known.has(event.target)) mark([event.target]); }, {capture: true, passive: true});
  document.addEventListener('toggle', later, {capture: true});
  for (const one of document.querySelectorAll('.explorer, .run, #serving-answer')) new MutationObserver(later).observe(one, {childList: true, subtree: true});
  look();

  const drawer = document.getElementById('pst-secondary-sidebar-modal');
  drawer?.addEventListener('click', event => { if (event.target.closest('a[href*="#"]')) drawer.close(); });
})();
