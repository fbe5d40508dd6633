// A grid of thumbnails of any number of images, of which only the lines in view exist; walked through by keyboard.
"use strict";

class Tiles {
  // `scroller` is an element that scrolls, or null where the whole page does.
  constructor(into, label, scroller = null) {
    this.gap = 7;
    this.beyond = 500; // pixels kept ready above and below what is visible
    this.places = [];
    this.at = 0; // position that the keyboard is on
    this.lines = new Map();
    this.scroller = scroller;
    this.grid = make("div", { class: "tiles", role: "listbox", "aria-label": label });
    into.append(this.grid);
    this.grid.addEventListener("click", (event) => this.open(this.positionOf(event.target)));
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    let waiting = false;
    const scrolled = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; this.draw(); });
    };
    (scroller || window).addEventListener("scroll", scrolled, { passive: true });
    window.addEventListener("resize", scrolled, { passive: true });
    this.width = 0;
    new ResizeObserver(() => { if (this.grid.clientWidth !== this.width) this.layout(); }).observe(this.grid);
  }

  show(places, label) {
    this.places = places;
    this.at = Math.min(this.at, Math.max(places.length - 1, 0));
    if (label) this.grid.setAttribute("aria-label", label);
    this.layout();
  }

  layout() {
    this.width = this.grid.clientWidth;
    if (!this.width) return;
    const least = innerWidth < 700 ? 62 : 84, focused = this.grid.contains(document.activeElement);
    this.columns = Math.max(1, Math.floor((this.width + this.gap) / (least + this.gap)));
    this.side = (this.width - this.gap * (this.columns - 1)) / this.columns;
    this.grid.style.height = `${Math.ceil(this.places.length / this.columns) * (this.side + this.gap)}px`;
    this.lines.clear();
    this.grid.replaceChildren();
    this.draw();
    if (focused) this.tileAt(this.at)?.focus({ preventScroll: true });
  }

  draw() {
    if (!this.width || !this.places.length || !this.grid.offsetParent) return;
    const frame = this.scroller ? this.scroller.getBoundingClientRect() : { top: 0, bottom: innerHeight };
    const high = this.side + this.gap, top = this.grid.getBoundingClientRect().top, last = Math.ceil(this.places.length / this.columns) - 1;
    const from = Math.max(0, Math.floor((frame.top - top - this.beyond) / high)), to = Math.min(last, Math.floor((frame.bottom - top + this.beyond) / high));
    const wanted = new Set([Math.floor(this.at / this.columns)]);
    for (let line = from; line <= to; line++) wanted.add(line);
    for (const [line, tiles] of this.lines) if (!wanted.has(line)) { tiles.forEach((tile) => tile.remove()); this.lines.delete(line); }
    for (const line of [...wanted].sort((a, b) => a - b)) if (!this.lines.has(line)) this.add(line);
  }

  add(line) {
    const first = line * this.columns, some = this.places.slice(first, first + this.columns);
    const tiles = some.map((place, i) => this.tile(place, first + i));
    const after = [...this.lines.keys()].filter((other) => other > line).sort((a, b) => a - b)[0];
    const next = after === undefined ? null : this.lines.get(after)[0];
    tiles.forEach((tile) => this.grid.insertBefore(tile, next));
    this.lines.set(line, tiles);
  }

  tile(place, position) {
    const style = thumbnail(place, this.side), step = this.side + this.gap;
    const picture = style ? make("i", { style }) : make("span", { class: "text" });
    const bar = make("span", { class: "bar", style: { width: perCent(confidence(place)).replace(" ", "") } });
    const tile = make("div", {
      class: data.flags[place] & BY_HAND ? "tile by-hand" : "tile", role: "option", "aria-selected": "false", tabindex: position === this.at ? "0" : "-1",
      "aria-setsize": this.places.length, "aria-posinset": position + 1, "data-position": position, "aria-label": about(place),
      style: { width: `${this.side}px`, height: `${this.side}px`, transform: `translate(${(position % this.columns) * step}px, ${Math.floor(position / this.columns) * step}px)` },
    }, picture, bar);
    nameOf(place).then((name) => {
      tile.title = `${name}\n${about(place)}`;
      tile.setAttribute("aria-label", `${name}, ${about(place)}`);
      if (!style) picture.textContent = name;
    }, () => {});
    return tile;
  }

  tileAt(position) {
    return this.lines.get(Math.floor(position / this.columns))?.[position % this.columns];
  }

  positionOf(target) {
    const tile = target.closest(".tile");
    return tile ? Number(tile.dataset.position) : -1;
  }

  pressed(event) {
    const page = this.columns * Math.max(1, Math.floor((this.scroller?.clientHeight || innerHeight) / (this.side + this.gap)) - 1);
    const step = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns,
      PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity,
    }[event.key];
    if (step !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey) this.goTo(this.at + step);
    else if (event.key === "Enter" || event.key === " ") this.open(this.at);
    else return;
    event.preventDefault();
  }

  goTo(position) {
    if (!this.places.length) return;
    this.tileAt(this.at)?.setAttribute("tabindex", "-1");
    this.at = Math.min(Math.max(position, 0), this.places.length - 1);
    this.draw();
    const tile = this.tileAt(this.at);
    tile.setAttribute("tabindex", "0");
    tile.focus({ preventScroll: true });
    tile.scrollIntoView({ block: "nearest" });
  }

  open(position) {
    if (position >= 0 && position < this.places.length) look(this.places, position, (last) => this.goTo(last));
  }
}

// One image large, with its name; arrow keys go to its neighbours.
let looking = null;
function look(places, position, left) {
  looking = { places, position, left };
  byId("look").showModal();
  drawLook();
}
function drawLook() {
  const { places, position } = looking, place = places[position], picture = byId("look").querySelector("i");
  const style = thumbnail(place, 288);
  picture.hidden = !style;
  Object.assign(picture.style, style || {});
  byId("look-name").textContent = nameIfThere(place) || "…";
  byId("look-about").textContent = about(place);
  nameOf(place).then((name) => { if (looking && looking.places[looking.position] === place) byId("look-name").textContent = name; }, () => { byId("look-name").textContent = "(no name)"; });
}
function stepLook(step) {
  looking.position = (looking.position + step + looking.places.length) % looking.places.length;
  drawLook();
}
byId("look").addEventListener("click", (event) => {
  if (event.target.dataset.step) stepLook(Number(event.target.dataset.step));
  else if ("close" in event.target.dataset || event.target === byId("look")) byId("look").close();
});
byId("look").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (step) { event.preventDefault(); stepLook(step); }
});
byId("look").addEventListener("close", () => { const { left, position } = looking; looking = null; left(position); });
