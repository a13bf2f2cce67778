// The start page's search: the index of the pages (lib/threeloops/site/finding), fetched once somebody looks for something.
export const finding = (ask) => {
  let made; // promises {index, copies, found}
  const begin = async () => {
    const { script, index, copies } = await ask();
    const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const { read, found } = await import(address);
    URL.revokeObjectURL(address);
    const known = read(index);
    return { copies, found: (query) => found(known, query) };
  };
  return (page) => {
    const form = page.querySelector(".find"), input = form.querySelector("input"), list = page.querySelector(".found");
    form.hidden = false;
    let turn = 0;
    const look = async () => {
      const own = (turn += 1), query = input.value.trim();
      if (query && !made) list.textContent = "A moment …";
      made ??= begin();
      try {
        const { copies, found } = await made;
        if (own === turn) list.replaceChildren(...(query ? shown(found(query), copies) : []));
      } catch (error) {
        made = undefined; // the next letter tries again
        list.textContent = `The book cannot be searched now: ${error.message}`;
      }
    };
    input.addEventListener("focus", look);
    input.addEventListener("input", look);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      await look();
      list.querySelector("a")?.focus();
    });
  };
};

const shown = (pages, copies) => {
  if (!pages.length) return ["Nothing. Another word, or its abbreviation, may find it."];
  const list = document.createElement("ul");
  for (const { page, part, places } of pages.slice(0, 6)) {
    const item = document.createElement("li");
    const [best] = places;
    item.append(link(copies[page], "", part));
    for (const place of places.filter(({ anchor }) => anchor)) item.append(" · ", link(copies[page], place.heading.replaceAll(" ", "-"), place.heading));
    const said = document.createElement("span");
    said.textContent = best?.said ?? "";
    item.append(said);
    list.append(item);
  }
  return [list];
};

const link = (copy, heading, words) => {
  const made = document.createElement("a");
  made.href = encodeURI(copy) + (heading && `#${encodeURIComponent(heading)}`);
  made.textContent = words;
  return made;
};
