// Where the reader was: every part leaves its name in this browser, and the first page leads back to the last one.
// There, too: the three questions of the day.
(() => {
  'use strict';
  const KEPT = 'threeloops-last';
  const DAY_MS = 24 * 60 * 60 * 1000;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const page = location.href.slice(root.href.length).replace(/[?#].*$/, '');
  const back = document.getElementById('front-last');

  // A browser may refuse to keep anything; then nothing is kept.
  const last = () => { try { return JSON.parse(localStorage.getItem(KEPT)); } catch { return null; } };
  const leave = told => { try { localStorage.setItem(KEPT, JSON.stringify(told)); } catch { /* nothing is kept */ } };

  // The heading that stands above, or at, the upper edge of the window.
  function heading() {
    const passed = [...document.querySelectorAll('article section[id] > :is(h2, h3)')].filter(one => one.getBoundingClientRect().top < innerHeight / 3);
    return passed.at(-1)?.parentElement.id ?? '';
  }

  if (/^\d_[^/]+\/(?!index)/.test(page)) {
    const title = document.querySelector('h1').firstChild.textContent.trim();
    const note = () => leave({page, title, heading: heading()});
    leave({page, title, heading: location.hash.slice(1)}); // headings are not measured while the page is being laid out
    addEventListener('pagehide', note);
    document.addEventListener('visibilitychange', note); // a phone may end a page without another word
  }
  const kept = back && last();
  if (kept && /^\d_\w+\/\w+\.html$/.test(kept.page) && typeof kept.title === 'string') {
    back.href = new URL(kept.page + (kept.heading ? `#${encodeURIComponent(kept.heading)}` : ''), root).href;
    back.textContent = `Where you were: ${kept.title}`;
    back.hidden = false;
  }

  const drills = document.getElementById('front-drills');
  if (drills) {
    const now = new Date();
    const day = Math.floor(Date.UTC(now.getFullYear(), now.getMonth(), now.getDate()) / DAY_MS);
    const links = document.querySelectorAll('#front-today a');
    JSON.parse(drills.textContent).forEach((each, loop) => {
      const [key, title] = each[day % each.length];
      links[loop].href = `practise.html?drill=${encodeURIComponent(key)}`;
      links[loop].textContent = title;
    });
  }
})();
