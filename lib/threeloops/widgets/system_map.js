// The stages of the system in a row, one of them chosen: a radio group, where a click or the arrow keys choose.
function render({ model, el }) {
  const group = document.createElement("div");
  group.setAttribute("role", "radiogroup");
  group.setAttribute("aria-label", "stage");
  // JupyterLab would take the arrow keys for its own.
  group.setAttribute("data-lm-suppress-shortcuts", "true");
  Object.assign(group.style, { display: "flex", flexWrap: "wrap", rowGap: "10px", maxWidth: "640px" });
  el.append(group);

  const choose = (key) => {
    model.set("chosen", key);
    model.save_changes();
  };
  const step = (event) => {
    const keys = model.get("stages").map((stage) => stage.key);
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const ends = { Home: 0, End: keys.length - 1 };
    if (way === undefined && !(event.key in ends)) return;
    event.preventDefault();
    event.stopPropagation();
    const place = way === undefined ? ends[event.key] : (keys.indexOf(model.get("chosen")) + way + keys.length) % keys.length;
    choose(keys[place]);
  };
  group.addEventListener("keydown", step);

  const draw = () => {
    const held = group.contains(document.activeElement);
    const parts = [];
    for (const stage of model.get("stages")) {
      if (parts.length) parts.push(arrow());
      parts.push(box(stage, stage.key === model.get("chosen"), choose));
    }
    group.replaceChildren(...parts);
    if (held) group.querySelector("[aria-checked=true]")?.focus();
  };
  model.on("change:chosen change:stages", draw);
  draw();
}

function arrow() {
  const sign = document.createElement("span");
  sign.setAttribute("aria-hidden", "true");
  sign.textContent = "→";
  Object.assign(sign.style, { alignSelf: "center", width: "20px", textAlign: "center", fontSize: "16px" });
  return sign;
}

// Chosen: dark, with a filled dot. Colours are stated, because a page may be dark.
function box(stage, chosen, choose) {
  const button = document.createElement("button");
  button.type = "button";
  button.setAttribute("role", "radio");
  button.setAttribute("aria-checked", String(chosen));
  button.tabIndex = chosen ? 0 : -1;
  button.append(line(`${chosen ? "●" : "○"} ${stage.name}`, "bold"), line(stage.note, "normal"));
  Object.assign(button.style, {
    width: "138px",
    minHeight: "58px",
    padding: "6px 4px",
    font: "13px/1.4 sans-serif",
    cursor: "pointer",
    borderRadius: "6px",
    border: `2px solid ${chosen ? "#1a1a1a" : "#595959"}`,
    background: chosen ? "#0072b2" : "#ffffff",
    color: chosen ? "#ffffff" : "#1a1a1a",
  });
  button.addEventListener("click", () => choose(stage.key));
  return button;
}

function line(text, weight) {
  const row = document.createElement("span");
  row.textContent = text;
  Object.assign(row.style, { display: "block", fontWeight: weight });
  return row;
}

export default { render };
