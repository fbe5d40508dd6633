// The map: points in the colours of classes, the image of the one pointed at, and a selection drawn around or picked.
"use strict";

const startMap = () => {
  const canvas = byId("plot"), told = byId("told"), legend = byId("legend"), pen = canvas.getContext("2d");
  const { place, x, y } = data.map, n = place.length;
  const found = place.map((p) => data.classes.indexOf(classAt(p)));
  const truth = data.trueClasses.length ? place.map((p) => data.truth[p]) : null;
  const isNew = place.map((p) => !(data.flags[p] & LABELLED));
  const kinds = {
    found: { of: found, classes: data.classes.map((one) => ({ name: one.name, colour: one.colour, fresh: one.kind !== "known" })) },
    truth: { of: truth, classes: data.trueClasses.map((one, i) => ({ ...one, fresh: i >= data.nKnown })) },
  };
  const walk = [...Array(n).keys()].sort((a, b) => x[a] - x[b]); // arrow keys go from left to right
  const paint = [...Array(n).keys()].sort((a, b) => isNew[a] - isNew[b]); // unlabelled images on top
  const widest = Math.max(...x, 1), highest = Math.max(...y, 1), margin = 18;
  const selected = new Set();
  const tiles = new Tiles(byId("selection-tiles"), "Selected images", byId("selection-tiles"));
  let by = "found", single = null, current = null, lasso = null;

  const shows = (i) => single === null || kinds[by].of[i] === single;
  const colour = (i) => kinds[by].classes[kinds[by].of[i]].colour;

  function frame() {
    const { width, height } = canvas.getBoundingClientRect();
    const scale = Math.min((width - 2 * margin) / widest, (height - 2 * margin) / highest);
    return { width, height, scale, left: (width - scale * widest) / 2, top: (height - scale * highest) / 2 };
  }
  const at = (i, f) => [f.left + f.scale * x[i], f.top + f.scale * y[i]];

  function dot([px, py], radius) {
    pen.beginPath();
    pen.arc(px, py, radius, 0, 2 * Math.PI);
    pen.fill();
  }

  function draw() {
    const f = frame(), sharp = window.devicePixelRatio || 1, ink = getComputedStyle(canvas).color;
    if (!f.width) return;
    canvas.width = Math.round(f.width * sharp);
    canvas.height = Math.round(f.height * sharp);
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    const radius = n > 5000 ? 1.7 : n > 800 ? 2.6 : 4;
    for (const i of paint) {
      pen.globalAlpha = shows(i) ? (isNew[i] ? 0.85 : 0.6) : 0.08;
      pen.fillStyle = colour(i);
      dot(at(i, f), isNew[i] ? radius : radius * 0.85);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = ink;
    pen.lineWidth = 1;
    for (const i of selected) { pen.fillStyle = colour(i); dot(at(i, f), radius + 0.5); pen.stroke(); }
    if (current !== null) {
      pen.fillStyle = colour(current);
      dot(at(current, f), radius + 2.5);
      pen.lineWidth = 2;
      pen.stroke();
    }
    if (lasso && lasso.length > 1) {
      pen.beginPath();
      lasso.forEach(([px, py], k) => (k ? pen.lineTo(px, py) : pen.moveTo(px, py)));
      pen.closePath();
      pen.globalAlpha = 0.08;
      pen.fillStyle = ink;
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 1.2;
      pen.setLineDash([5, 4]);
      pen.stroke();
      pen.setLineDash([]);
    }
  }

  function point(i) {
    if (i === current) return;
    current = i;
    told.hidden = i === null;
    if (i !== null) tell(i);
    draw();
  }

  function tell(i) {
    const p = place[i], [picture, text] = told.children, style = thumbnail(p, 112);
    const describe = (name) => { text.textContent = `${name}\n${about(p).replaceAll(" · ", "\n")}`; };
    if (style) Object.assign(picture.style, style);
    describe(nameIfThere(p) || "…");
    nameOf(p).then((name) => { if (current === i) describe(name); }, () => describe("(no name)"));
    const f = frame(), [px, py] = at(i, f);
    told.style.left = px < f.width / 2 ? `${px + 14}px` : "auto";
    told.style.right = px < f.width / 2 ? "auto" : `${f.width - px + 14}px`;
    told.style.top = py < f.height / 2 ? `${py + 8}px` : "auto";
    told.style.bottom = py < f.height / 2 ? "auto" : `${f.height - py + 8}px`;
  }

  const spot = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

  function nearest([sx, sy]) {
    const f = frame();
    let best = null, least = 14 * 14;
    for (let i = 0; i < n; i++) {
      if (!shows(i)) continue;
      const [px, py] = at(i, f), distance = (px - sx) ** 2 + (py - sy) ** 2;
      if (distance < least) { least = distance; best = i; }
    }
    return best;
  }

  // Whether a point is inside the drawn line: a ray from it to the right crosses the line an odd number of times.
  function inside([px, py], line) {
    let odd = false;
    for (let k = 0, last = line.length - 1; k < line.length; last = k++) {
      const [ax, ay] = line[k], [bx, by_] = line[last];
      if (ay > py !== by_ > py && px < ((bx - ax) * (py - ay)) / (by_ - ay) + ax) odd = !odd;
    }
    return odd;
  }

  function chosen(points, more) {
    if (!more) selected.clear();
    points.forEach((i) => selected.add(i));
    tellSelection();
  }
  function toggle(i) {
    selected.has(i) ? selected.delete(i) : selected.add(i);
    tellSelection();
  }
  const selectedPlaces = () => [...selected].map((i) => place[i]).sort((a, b) => a - b);
  function tellSelection() {
    const places = selectedPlaces(), sizes = new Map();
    for (const p of places) sizes.set(classAt(p).name, (sizes.get(classAt(p).name) || 0) + 1);
    const parts = [...sizes].sort((a, b) => b[1] - a[1]), listed = parts.slice(0, 4).map(([name, size]) => `${size.toLocaleString("en")} in ${name}`);
    if (parts.length > 4) listed.push("…");
    byId("selection").hidden = !places.length;
    byId("selection-told").textContent = places.length ? `${places.length.toLocaleString("en")} selected: ${listed.join(", ")}` : "";
    byId("selection-ids").replaceChildren();
    tiles.at = 0;
    tiles.show(places, "Selected images");
    draw();
  }

  function list() {
    const { of, classes } = kinds[by], counts = new Map();
    for (const number of of) counts.set(number, (counts.get(number) || 0) + 1);
    const numbers = [...classes.keys()].filter((number) => counts.has(number));
    const items = (fresh) => numbers.filter((number) => classes[number].fresh === fresh).map((number) => entry(number, counts.get(number)));
    legend.replaceChildren(...group("new classes", items(true)), ...group("known classes", items(false)));
  }
  function group(title, items) {
    return items.length ? [make("li", { class: "group" }, title), ...items] : [];
  }
  function entry(number, count) {
    const { name, colour: tone } = kinds[by].classes[number];
    const button = make("button", { type: "button", "aria-pressed": String(single === number) },
      make("span", { class: "dot", style: { background: tone } }), name, make("small", {}, count.toLocaleString("en")));
    button.addEventListener("click", () => {
      single = single === number ? null : number;
      legend.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", "false"));
      button.setAttribute("aria-pressed", String(single === number));
      point(null);
      draw();
    });
    return make("li", {}, button);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    lasso = [spot(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!lasso) return point(nearest(spot(event)));
    const [sx, sy] = spot(event), [lx, ly] = lasso[lasso.length - 1];
    if (Math.hypot(sx - lx, sy - ly) < 3) return;
    lasso.push([sx, sy]);
    point(null);
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!lasso) return;
    const line = lasso, f = frame();
    lasso = null;
    if (line.length > 3) return chosen([...Array(n).keys()].filter((i) => shows(i) && inside(at(i, f), line)), event.shiftKey);
    const hit = nearest(spot(event));
    if (hit !== null) toggle(hit);
    else draw();
  });
  canvas.addEventListener("pointercancel", () => { lasso = null; draw(); });
  canvas.addEventListener("pointerleave", () => { if (!lasso) point(null); });
  canvas.addEventListener("blur", () => point(null));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const shown = walk.filter(shows), place_ = shown.indexOf(current);
      if (shown.length) point(shown[place_ < 0 ? 0 : (place_ + step + shown.length) % shown.length]);
    } else if (event.key === " " && current !== null) toggle(current);
    else if (event.key === "Enter" && current !== null) location.hash = address(classAt(place[current]));
    else if (event.key === "Escape") { if (current === null) chosen([], false); else point(null); }
    else return;
    event.preventDefault();
  });
  for (const choice of document.querySelectorAll('input[name="colour"]')) {
    choice.addEventListener("change", () => { by = choice.value; single = null; list(); point(null); draw(); });
  }
  byId("select-shown").addEventListener("click", () => chosen([...Array(n).keys()].filter(shows), false));
  byId("selection-clear").addEventListener("click", () => { chosen([], false); canvas.focus(); });
  byId("selection-copy").addEventListener("click", (event) => copyIds(selectedPlaces(), byId("selection-ids"), event.currentTarget));
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  list();
};

if (data.map) startMap();
