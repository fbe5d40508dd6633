// A grid of thumbnails of any number of images, of which only those in view exist; selected by mouse, touch and keyboard.

import { make, perCent, store, thumbnails } from "/static/api.js";
import { look } from "/static/dialogs.js";

const GAP = 7, BEYOND = 700; // pixels: between tiles; kept ready above and below what is visible

export class Tiles {
  constructor(label, onSelection) {
    this.items = [];
    this.selected = new Set(); // rows
    this.at = 0; // the place that the keyboard is on
    this.anchor = 0; // where a range begins
    this.batches = new Map(); // number → tiles, as many as a sheet holds
    this.columns = 1;
    this.side = 96;
    this.onSelection = onSelection;
    this.grid = make("div", { class: "tiles", role: "listbox", "aria-multiselectable": "true", "aria-label": label });
    this.element = this.grid;
    this.grid.addEventListener("click", (event) => this.clicked(event));
    this.grid.addEventListener("dblclick", (event) => this.opened(this.placeOf(event.target)));
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    new ResizeObserver(() => this.layout()).observe(this.grid);
    this.listening = new AbortController();
    let waiting = false;
    window.addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; this.draw(); });
    }, { passive: true, signal: this.listening.signal });
  }

  leave() { this.listening.abort(); }

  show(items) {
    const places = new Map(items.map((one, place) => [one.row, place])), focused = this.grid.contains(document.activeElement);
    // the keyboard stays with its image: where others go meanwhile, its place is that of another
    const follow = (place) => places.get(this.items[place]?.row) ?? Math.min(place, Math.max(items.length - 1, 0));
    [this.at, this.anchor] = [follow(this.at), follow(this.anchor)];
    this.items = items;
    this.selected = new Set([...this.selected].filter((row) => places.has(row)));
    this.layout();
    if (focused) this.goTo(this.at);
    this.told();
  }

  // Fits columns into the width and begins anew.
  layout() {
    const width = this.grid.clientWidth, least = innerWidth < 700 ? 70 : 92;
    if (!width) return;
    const focused = this.grid.contains(document.activeElement);
    this.columns = Math.max(1, Math.floor((width + GAP) / (least + GAP)));
    this.side = (width - GAP * (this.columns - 1)) / this.columns;
    this.grid.style.height = `${Math.ceil(this.items.length / this.columns) * (this.side + GAP)}px`;
    this.batches.clear();
    this.grid.replaceChildren();
    this.draw();
    if (focused) this.tileAt(this.at)?.focus({ preventScroll: true });
  }

  // Makes the tiles in and near the view, and that of the keyboard; lets all others go.
  draw() {
    if (!this.grid.isConnected || !this.items.length) return;
    const most = store.state.cells.most, high = this.side + GAP, top = this.grid.getBoundingClientRect().top;
    const from = Math.floor((-top - BEYOND) / high) * this.columns, to = Math.ceil((innerHeight - top + BEYOND) / high) * this.columns;
    const last = Math.ceil(this.items.length / most) - 1;
    const wanted = new Set([Math.floor(this.at / most)]);
    for (let n = Math.max(0, Math.floor(from / most)); n <= Math.min(last, Math.floor((to - 1) / most)); n++) wanted.add(n);
    for (const [n, tiles] of this.batches) if (!wanted.has(n)) { tiles.forEach((tile) => tile.remove()); this.batches.delete(n); }
    for (const n of [...wanted].sort((a, b) => a - b)) if (!this.batches.has(n)) this.add(n);
  }

  add(n) {
    const most = store.state.cells.most, some = this.items.slice(n * most, (n + 1) * most);
    const styles = thumbnails(some.map((one) => one.row));
    const tiles = some.map((one, i) => this.tile(one, styles[i], n * most + i));
    const after = [...this.batches.keys()].filter((other) => other > n).sort((a, b) => a - b)[0];
    const next = after === undefined ? null : this.batches.get(after)[0];
    tiles.forEach((tile) => this.grid.insertBefore(tile, next));
    this.batches.set(n, tiles);
  }

  tile(one, style, place) {
    const about = `${one.id}, confidence ${perCent(one.confidence)}${one.look ? `, ${one.look}` : ""}${one.labelled ? ", labelled" : ""}${one.moved ? ", moved here" : ""}`;
    const picture = store.state.missing ? make("span", { class: "text" }, one.id) : make("i", { style });
    const column = place % this.columns, line = Math.floor(place / this.columns), step = this.side + GAP;
    return make("div", {
      role: "option", class: "tile" + (one.moved ? " moved" : ""), title: about, "aria-label": about, "data-place": place,
      "aria-selected": String(this.selected.has(one.row)), "aria-setsize": this.items.length, "aria-posinset": place + 1,
      tabindex: place === this.at ? "0" : "-1",
      style: { width: `${this.side}px`, height: `${this.side}px`, transform: `translate(${column * step}px, ${line * step}px)` },
    }, picture, make("span", { class: "bar", style: { width: `${Math.round(100 * one.confidence)}%` } }));
  }

  tileAt(place) {
    const most = store.state.cells.most;
    return this.batches.get(Math.floor(place / most))?.[place % most];
  }

  placeOf(target) {
    const tile = target.closest(".tile");
    return tile ? Number(tile.dataset.place) : -1;
  }

  clicked(event) {
    const place = this.placeOf(event.target);
    if (place < 0 || event.detail > 1) return; // the second click of a double click opens, and changes nothing
    this.goTo(place);
    if (event.shiftKey) this.range(place);
    else { this.toggle(place); this.anchor = place; }
  }

  opened(place) {
    if (place < 0 || store.state.missing) return;
    look(this.items, place).then((last) => this.goTo(last));
  }

  pressed(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined && !event.altKey) {
      const place = Math.min(Math.max(this.at + step, 0), this.items.length - 1);
      this.goTo(place);
      if (event.shiftKey) this.range(place);
      else this.anchor = place;
    } else if (event.key === " ") { this.toggle(this.at); this.anchor = this.at; }
    else if (event.key === "Enter") this.opened(this.at);
    else if (event.key === "a" && (event.ctrlKey || event.metaKey)) this.selectAll();
    else return;
    event.preventDefault();
  }

  goTo(place) {
    if (!this.items.length) return;
    this.tileAt(this.at)?.setAttribute("tabindex", "-1");
    this.at = place;
    this.draw();
    const tile = this.tileAt(place);
    if (!tile) return;
    tile.setAttribute("tabindex", "0");
    tile.focus({ preventScroll: true });
    tile.scrollIntoView({ block: "nearest" });
  }

  toggle(place) {
    if (!this.items.length) return;
    const { row } = this.items[place];
    this.selected.has(row) ? this.selected.delete(row) : this.selected.add(row);
    this.told();
  }

  range(place) {
    const [low, high] = [this.anchor, place].sort((a, b) => a - b);
    for (let i = low; i <= high; i++) this.selected.add(this.items[i].row);
    this.told();
  }

  selectAll() {
    this.items.forEach((one) => this.selected.add(one.row));
    this.told();
  }

  clear() {
    this.selected.clear();
    this.told();
  }

  told() {
    for (const tiles of this.batches.values()) {
      for (const tile of tiles) tile.setAttribute("aria-selected", String(this.selected.has(this.items[tile.dataset.place].row)));
    }
    this.onSelection(this.items.filter((one) => this.selected.has(one.row)));
  }
}
