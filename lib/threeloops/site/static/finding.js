// What a reader looks for, found in the book's index. Words are compared as lib/threeloops/site/finding/spelt.py spells them.
const WORD = /[\p{L}\p{N}]+(?:[-/.'’][\p{L}\p{N}]+)*/gu;
const PARTS = /[-/.'’]/;
const ENDINGS = [['isation', 'ization'], ['isations', 'izations'], ['ising', 'izing'], ['ised', 'ized'], ['iser', 'izer'], ['ise', 'ize'],
  ['yse', 'yze'], ['ysed', 'yzed'], ['our', 'or'], ['ours', 'ors'], ['ouring', 'oring'], ['tre', 'ter'], ['elling', 'eling'], ['elled', 'eled'], ['ogue', 'og']];
const LONGEST_PLAIN = 4;

export function spelt(word) {
  let made = word.normalize('NFKC').toLowerCase();
  if (made.length > 2 && made.endsWith('s') && !/(?:ss|is)$/.test(made)) made = made.slice(0, -1);
  if (made.length > LONGEST_PLAIN) {
    for (const [british, american] of ENDINGS) if (made.endsWith(british)) return made.slice(0, -british.length) + american;
  }
  return made;
}

export const tokens = text => [...text.matchAll(WORD)].flatMap(([word]) => {
  const parts = word.split(PARTS).map(spelt);
  return parts.length > 1 ? [...parts, parts.join('')] : parts;
});

// What a word of the query is worth where it stands: in a page's name, in a heading, among the terms that are introduced
// there, in the text; and how much of all that the book says of it stands on this page. A word that only begins so is
// worth a part of that.
const WORTH = {part: 8, heading: 5, term: 4, text: 1.2, begun: 0.5, beyond: 0.25, titled: 14, share: 40, drills: 0.45, called: 1};
const SHORTEST = 3; // letters of a word that may be the beginning of another
const FEW = 1.5; // how often a word stands below a heading that speaks of it
const SHOWN = 3; // places of a page
const PAGES = 12;

// The index as it is searched: made once.
export function read({places, words}) {
  const made = new Map(Object.entries(words)); // an object of its own would know "constructor"
  return {known: [...made.keys()], words: made, places: places.map(([page, anchor, part, heading, said, terms]) => (
    {page, anchor, part, heading, said, terms, inPart: new Set(tokens(part)), inHeading: new Set(tokens(heading))}))};
}

// Words of the query; and neighbours that the book writes as one: all reduce, all-reduce, allreduce.
function asked({words}, query) {
  const each = [...query.matchAll(WORD)].flatMap(([word]) => word.split(PARTS).map(spelt));
  const pairs = each.slice(1).map((word, place) => each[place] + word).filter(pair => words.has(pair));
  return {each, pairs, whole: each.join('')};
}

function share(set, word) {
  if (set.has(word)) return 1;
  return word.length >= SHORTEST && [...set].some(one => one.startsWith(word)) ? WORTH.begun : 0;
}

// Pages, best first: {page, part, places}.
export function found(index, query) {
  const {each, pairs, whole} = asked(index, query);
  if (!each.length) return [];
  const scores = new Float64Array(index.places.length);
  const shares = new Map(); // page -> how much of what is said of the words stands there
  const matched = new Float64Array(index.places.length);
  for (const word of [...each, ...pairs]) {
    const own = index.words.get(word);
    const begun = word.length < SHORTEST ? [] : index.known.filter(one => one !== word && one.startsWith(word)).map(one => index.words.get(one));
    const rare = Math.log(1 + index.places.length / (1 + (own?.length ?? begun[0]?.length ?? 0) / 2));
    const there = new Map();
    for (const [list, worth] of [...begun.map(one => [one, WORTH.begun]), ...(own ? [[own, 1]] : [])]) {
      for (let at = 0; at < list.length; at += 2) {
        const said = worth * list[at + 1] / (list[at + 1] + FEW);
        there.set(list[at], Math.max(there.get(list[at]) ?? 0, said));
      }
    }
    index.places.forEach((place, number) => {
      const inPart = share(place.inPart, word) * (place.anchor ? WORTH.beyond : 1);
      const inHeading = place.anchor ? share(place.inHeading, word) : 0;
      const inTerms = place.terms.includes(word) ? 1 : 0;
      const inText = there.get(number) ?? 0;
      scores[number] += rare * (WORTH.part * inPart + WORTH.heading * inHeading + WORTH.called * inTerms + WORTH.text * inText);
      if (inPart || inHeading || inTerms || inText) matched[number] += 1;
    });
  }
  for (const own of each.map(word => index.words.get(word)).filter(Boolean)) {
    const all = own.reduce((sum, count, at) => sum + (at % 2 ? count : 0), 0);
    for (let at = 0; at < own.length; at += 2) {
      const {page} = index.places[own[at]];
      shares.set(page, (shares.get(page) ?? 0) + own[at + 1] / all);
    }
  }
  const parts = each.length + pairs.length;
  const pages = new Map();
  index.places.forEach((place, number) => {
    let score = scores[number] * (matched[number] / parts) ** 2;
    if (place.terms.includes(whole)) score += WORTH.term * (each.length + 1);
    if (!score) return;
    if (!pages.has(place.page)) pages.set(place.page, {page: place.page, part: place.part, places: []});
    pages.get(place.page).places.push({...place, score});
  });
  const ranked = [...pages.values()].map(one => {
    const places = one.places.sort((a, b) => b.score - a.score).slice(0, SHOWN);
    const named = new Set(tokens(one.part));
    const bonus = each.every(word => named.has(word)) || named.has(whole) ? WORTH.titled * (each.length + 1) : 0;
    const score = bonus + WORTH.share * (shares.get(one.page) ?? 0) + places.reduce((sum, place, number) => sum + place.score / 2 ** number, 0);
    return {...one, places, score: score * (/^\d/.test(one.page) ? 1 : WORTH.drills)};
  });
  return ranked.sort((a, b) => b.score - a.score).slice(0, PAGES);
}
