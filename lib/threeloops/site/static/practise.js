// The page that asks any drill: practise.html?drill=KEY&seed=WORD; at random, what is due, of a family or a track.
(() => {
  'use strict';
  const {Card, all, call} = window.threeloops;
  const section = document.getElementById('any-drill');
  if (!section) return;
  const chosen = document.getElementById('drill-choice');
  const among = document.getElementById('drill-among');
  const address = document.getElementById('drill-address');
  const options = [...chosen.options];

  // Whether a drill is among those that are wished for.
  function fits(option) {
    const [kind, name] = among.value.split(':');
    if (kind === 'family') return option.parentElement.label === name;
    return kind !== 'track' || among.selectedOptions[0].dataset.loops.split(' ').includes(option.dataset.loop);
  }
  const fitting = () => options.filter(fits).map(option => option.value);

  class Any extends Card {
    way = 'random'; // how the next one is found

    leads() {
      return true;
    }

    onward() {
      return this[this.way]();
    }

    random() {
      this.way = 'random';
      const others = fitting().filter(key => key !== this.key);
      return this.next(others[Math.floor(Math.random() * others.length)]);
    }

    // What the interview room would repeat today, the longest overdue first.
    async due() {
      this.way = 'due';
      const told = await this.doing(async () => call('remembering.report', JSON.stringify(await all())));
      if (!told) return;
      const keys = new Set(fitting());
      const due = told.due.filter(one => one.now && keys.has(one.idea) && one.idea !== this.key);
      if (due.length) await this.next(due[0].idea);
      else this.say('Nothing else of this is due today. What you answer here comes back when it is.');
    }
  }

  const asked = new URLSearchParams(location.search);
  const known = new Set(options.map(option => option.value));
  section.hidden = false;
  document.getElementById('drill-ways').hidden = false;
  const card = new Any(section);
  section.addEventListener('drill:put', () => {
    chosen.value = card.key;
    const here = `?drill=${encodeURIComponent(card.key)}&seed=${encodeURIComponent(card.seed)}`;
    history.replaceState(null, '', here);
    address.href = here;
  });
  chosen.addEventListener('change', () => card.next(chosen.value));
  among.addEventListener('change', () => {
    for (const option of options) option.hidden = option.disabled = !fits(option);
    for (const group of chosen.querySelectorAll('optgroup')) group.hidden = [...group.children].every(option => option.hidden);
    if (!fitting().includes(card.key)) card.random();
  });
  for (const way of ['random', 'due']) document.getElementById(`drill-${way}`).addEventListener('click', () => card[way]());
  const key = asked.get('drill');
  if (key && !known.has(key)) card.say(`No drill is called ${key}; choose one above.`, 'drill-wrong');
  else if (key && asked.get('seed')) card.put(key, asked.get('seed'));
  else if (key) card.next(key);
})();
