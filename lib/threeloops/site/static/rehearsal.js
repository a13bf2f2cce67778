// The interview room on its page: JupyterLab's own panel (interview.js), with Python in the browser behind it.
// room.html?mode=today begins with that mode chosen.
(() => {
  'use strict';
  const place = document.getElementById('my-room');
  if (!place) return;
  const {FROM_A_FILE, all, add, left, leave, call, doing, script, tell} = window.threeloops;
  const SITTING = 'room sitting'; // where the sitting that was left is kept
  const told = JSON.parse(document.getElementById('room-told').textContent);
  const wait = place.querySelector('.room-wait');
  const heard = new Map(); // 'change:screen', 'msg:custom' -> who is told
  const state = {form: told.form, screen: told.screen, busy: told.busy};
  let entering = null; // Python's room, with this browser's attempts in it
  let doings = Promise.resolve(); // one after the other, as they were pressed
  let retry = null; // what failed, done again

  const say = (name, ...words) => { for (const one of heard.get(name) ?? []) one(...words); };

  function put(screen) {
    state.screen = screen;
    say('change:screen');
  }

  async function enter() {
    const [attempts, sitting] = await Promise.all([all(), left(SITTING)].map(one => one.catch(() => null))); // denied: from nothing
    return call('site.rehearsal.sitting.entered', JSON.stringify(attempts ?? []), JSON.stringify(sitting?.record ?? null), JSON.stringify(told.taught));
  }

  // Where Python came to an end the next try enters anew, with what is kept.
  async function act(wish) {
    entering ??= enter();
    try {
      await entering;
      return await call('site.rehearsal.sitting.acted', JSON.stringify(wish));
    } catch (error) {
      entering = null;
      throw error;
    }
  }

  // What cannot be kept is said once a sitting; the sitting goes on.
  async function keep({attempts, sitting}) {
    try {
      if (attempts.length) await add(attempts);
      await leave(SITTING, {record: sitting});
    } catch (error) {
      tell(wait, `This sitting is not remembered: ${error.message}`);
    }
  }

  // What failed is said, and the panel waits no longer.
  function telling(message, failed, again) {
    retry = again ?? null;
    tell(wait, message, again);
    wait.dataset.failed = failed ? 'yes' : '';
    if (failed) say('msg:custom', {failed});
  }

  async function done(wish) {
    if (wish.do === 'sync' && !entering) return;
    const came = await doing(() => act(wish), telling);
    if (!came) return;
    if (wait.dataset.failed) telling('', false);
    for (const message of came.messages) say('msg:custom', message);
    if (wish.do !== 'sync') put(came.screen);
    await keep(came);
  }

  const model = {
    get: name => state[name],
    on(name, one) { heard.set(name, [...heard.get(name) ?? [], one]); },
    off(name, one) { heard.set(name, (heard.get(name) ?? []).filter(other => other !== one)); },
    // Whoever presses something else than "Try again" tries again too: what comes twice is done once.
    send(wish) {
      const again = wish.do === 'sync' ? null : retry;
      if (again) {
        telling('', false);
        again();
      }
      doings = doings.then(() => done(wish));
    },
  };

  async function open() {
    if (location.protocol === 'file:') return tell(wait, FROM_A_FILE);
    const panel = await doing(() => script('interview.js'), (message, failed, again) => tell(wait, message, again));
    if (!panel) return;
    const kept = (await left(SITTING).catch(() => null))?.record;
    if (kept) state.screen = {...state.screen, unfinished: kept.words};
    panel.default.render({model, el: place});
    const mode = new URLSearchParams(location.search).get('mode');
    const choice = place.querySelector('[name=mode]');
    if ([...choice.options].some(one => one.value === mode)) {
      choice.value = mode;
      choice.dispatchEvent(new Event('change'));
    }
    // while the reader chooses, Python comes
    place.addEventListener('focusin', () => { entering ??= enter(); entering.catch(() => { entering = null; }); }, {once: true});
  }
  place.hidden = false;
  open();
})();
