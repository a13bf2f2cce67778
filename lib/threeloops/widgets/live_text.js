// The element stays, only its words change: that is what makes a screen reader speak them.
function render({ model, el }) {
  el.setAttribute("role", "status");
  el.setAttribute("aria-live", "polite");
  const show = () => {
    el.textContent = model.get("text");
    requestAnimationFrame(() => equip(el.parentElement));
  };
  model.on("change:text", show);
  show();
}

// What ipywidgets 8 leaves out for whoever uses the keyboard.
function equip(box) {
  // JupyterLab would take arrow keys and letters from a control: "down" goes to the next cell, "a" inserts one.
  for (const control of box?.querySelectorAll("select, [role=slider]") ?? []) {
    control.setAttribute("data-lm-suppress-shortcuts", "true");
  }
  // Sliders have neither a name nor a value in words: they get those that stand beside them.
  for (const slider of box?.querySelectorAll(".widget-slider") ?? []) {
    const handle = slider.querySelector("[role=slider]");
    handle?.setAttribute("aria-label", slider.querySelector(".widget-label")?.textContent ?? "");
    handle?.setAttribute("aria-valuetext", slider.querySelector(".widget-readout")?.textContent ?? "");
  }
}

export default { render };
