// A grid of thumbnails that grows as one scrolls, with a selection by mouse, touch and keyboard.

import { make, perCent, store, thumbnails } from "/static/api.js";
import { look } from "/static/dialogs.js";

export class Tiles {
  constructor(label, onSelection) {
    this.items = [];
    this.selected = new Set(); // rows
    this.at = 0; // the tile that the keyboard is on
    this.anchor = 0; // where a range begins
    this.onSelection = onSelection;
    this.grid = make("div", { class: "tiles", role: "listbox", "aria-multiselectable": "true", "aria-label": label });
    this.end = make("div", { class: "end", "aria-hidden": "true" });
    this.element = make("div", {}, this.grid, this.end);
    this.grid.addEventListener("click", (event) => this.clicked(event));
    this.grid.addEventListener("dblclick", (event) => this.opened(this.placeOf(event.target)));
    this.grid.addEventListener("keydown", (event) => this.pressed(event));
    new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) this.fill(); }, { rootMargin: "900px" }).observe(this.end);
  }

  show(items) {
    const there = new Set(items.map((one) => one.row)), focused = this.grid.contains(document.activeElement);
    this.items = items;
    this.selected = new Set([...this.selected].filter((row) => there.has(row)));
    this.at = Math.min(this.at, Math.max(items.length - 1, 0));
    this.anchor = this.at;
    this.grid.replaceChildren();
    this.grow();
    this.fill();
    if (focused) this.goTo(this.at);
    this.told();
  }

  // Grows until the end lies well below what is visible.
  fill() {
    while (this.element.isConnected && !this.end.hidden && this.end.getBoundingClientRect().top < innerHeight + 900) this.grow();
  }

  grow(upTo = this.grid.children.length + 1) {
    while (this.grid.children.length < Math.min(upTo, this.items.length)) {
      const start = this.grid.children.length;
      const some = this.items.slice(start, start + store.state.cells.most);
      const styles = thumbnails(some.map((one) => one.row));
      this.grid.append(...some.map((one, place) => this.tile(one, styles[place], start + place)));
    }
    this.end.hidden = this.grid.children.length >= this.items.length;
  }

  tile(one, style, place) {
    const about = `${one.id}, confidence ${perCent(one.confidence)}${one.labelled ? ", labelled" : ""}${one.moved ? ", moved here" : ""}`;
    const picture = store.state.missing ? make("span", { class: "text" }, one.id) : make("i", { style });
    return make("div", {
      role: "option", class: "tile" + (one.moved ? " moved" : ""), title: about, "aria-label": about, "data-row": one.row,
      "aria-selected": String(this.selected.has(one.row)), tabindex: place === this.at ? "0" : "-1",
    }, picture, make("span", { class: "bar", style: { width: `${Math.round(100 * one.confidence)}%` } }));
  }

  placeOf(target) {
    const tile = target.closest(".tile");
    return tile ? [...this.grid.children].indexOf(tile) : -1;
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
    const columns = getComputedStyle(this.grid).gridTemplateColumns.split(" ").length;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, Home: -Infinity, End: Infinity }[event.key];
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
    this.grow(place + 1);
    this.grid.children[this.at]?.setAttribute("tabindex", "-1");
    this.at = place;
    const tile = this.grid.children[place];
    if (!tile) return;
    tile.setAttribute("tabindex", "0");
    tile.focus({ preventScroll: true });
    tile.scrollIntoView({ block: "nearest" });
  }

  toggle(place) {
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
    for (const tile of this.grid.children) tile.setAttribute("aria-selected", String(this.selected.has(Number(tile.dataset.row))));
    this.onSelection(this.items.filter((one) => this.selected.has(one.row)));
  }
}
