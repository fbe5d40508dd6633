// The page of one class: all its images by confidence, with a threshold.
"use strict";

const classPage = (() => {
  const tiles = new Tiles(byId("class-tiles"), "Images");
  const slider = byId("class-threshold"), order = byId("class-order");
  let shown = [], one = null;

  // Images of a class lie by confidence, so that a threshold is one place: the first that is less sure than it.
  function firstBelow(level) {
    let low = one.start, high = one.end;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.confidence[middle] >= level) low = middle + 1; else high = middle;
    }
    return low;
  }

  function draw() {
    const unsure = order.value === "unsure", level = Number(slider.value) * 100;
    const [from, to] = unsure ? [firstBelow(level + 1), one.end] : [one.start, firstBelow(level)];
    shown = Array.from({ length: to - from }, (_, i) => (unsure ? to - 1 - i : from + i));
    byId("class-threshold-told").textContent = `Confidence ${unsure ? "up to" : "from"} ${slider.value} %`;
    byId("class-shown").textContent = `${shown.length.toLocaleString("en")} of ${(one.end - one.start).toLocaleString("en")} shown`;
    byId("class-ids").replaceChildren();
    tiles.show(shown, `Images of ${one.name}`);
  }

  function step(link, other, text) {
    link.textContent = other ? text(other.name) : "";
    if (other) link.href = address(other); else link.removeAttribute("href");
  }

  function open(chosen) {
    one = chosen;
    const size = one.end - one.start, at = data.classes.indexOf(one);
    const kinds = { new: "new class", known: "known class, from the labels", junk: "images that belong nowhere" };
    let sum = 0;
    for (let place = one.start; place < one.end; place++) sum += confidence(place);
    byId("class-kind").textContent = kinds[one.kind];
    byId("class-dot").style.background = one.colour;
    byId("class-title").textContent = one.name;
    byId("class-about").textContent = counted(size, "image", "images") + (size ? ` · mean confidence ${perCent(sum / size)}` : "");
    step(byId("class-before"), data.classes[at - 1], (name) => `← ${name}`);
    step(byId("class-after"), data.classes[at + 1], (name) => `${name} →`);
    byId("class-back").href = one.kind === "known" ? "#known" : "#classes";
    order.value = "sure";
    slider.value = "0";
    tiles.at = 0;
    draw();
  }

  slider.addEventListener("input", draw);
  order.addEventListener("change", () => { slider.value = order.value === "unsure" ? "100" : "0"; draw(); });
  byId("class-copy").addEventListener("click", (event) => copyIds(shown, byId("class-ids"), event.currentTarget));
  return { open };
})();

function address(one) {
  return `#/class/${one.kind === "junk" ? "junk" : one.number}`;
}
