// The explorer of the start page: the panel that notebooks show, answered by the server, since no kernel runs here.

// A function that puts the explorer into a section of the page; the same one, as it stands, however often the page is written anew.
export const touched = (ask) => {
  let made;
  return async (section) => {
    if (!section) return;
    made ??= ask().then((begun) => explorer(begun, ask));
    try {
      section.lastElementChild.replaceWith(await made);
      section.hidden = false;
    } catch (error) {
      made = undefined; // the page is whole without it; the next look tries again
      console.error("threeloops:touch", error);
    }
  };
};

const explorer = async ({ script, style, state }, ask) => {
  const address = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  const { default: panel } = await import(address);
  URL.revokeObjectURL(address);
  document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
  const place = document.createElement("div");
  panel.render({ model: model(state, ask), el: place });
  return place;
};

// The model that panel.js knows, with the server behind it.
const model = (state, ask) => {
  const heard = new Set();
  return {
    get: (key) => state[key],
    set: (key, value) => { state[key] = value; },
    on: (_, tell) => { heard.add(tell); },
    off: (_, tell) => { heard.delete(tell); },
    send: () => {},
    save_changes: async () => {
      Object.assign(state, await ask(state.turned));
      for (const tell of heard) tell();
    },
  };
};
