// The page of one class, or of the junk: all its images by confidence, and what can be done with them.

import { classOf, count, counted, imagesOf, make, perCent, store } from "/static/api.js";
import { askClass, askName, confirmed, perform, toast } from "/static/dialogs.js";
import { rename } from "/static/home.js";
import { Tiles } from "/static/tiles.js";

const JUNK = -1;

export class ImagesPage {
  constructor(number, onActions) {
    this.number = number;
    this.onActions = onActions;
    this.selection = [];
    this.all = [];
    this.unsureFirst = false;
    this.threshold = 0;
    this.tiles = new Tiles("Images", (selection) => { this.selection = selection; this.onActions(this.actions()); });
    this.head = make("header", { class: "title" });
    this.tools = this.toolbar();
    this.elements = [this.head, this.tools, this.tiles.element];
  }

  get one() {
    return this.number === JUNK ? { id: JUNK, name: "Junk", kind: "junk", size: store.state.junk.size } : classOf(this.number);
  }

  async load() {
    if (!this.one) { location.hash = "#/"; return; } // merged away
    try {
      const found = await imagesOf(this.number);
      this.all = found.rows.map((row, i) => ({ row, id: found.ids[i], confidence: found.confidence[i], labelled: found.labelled[i], moved: found.moved[i] }));
    } catch (error) {
      toast(error.message, { failed: true });
      return;
    }
    this.drawHead();
    this.draw();
  }

  drawHead() {
    const one = this.one, fresh = one.kind === "new";
    const button = (text, act, key) => make("button", { type: "button", "data-key": key, onclick: act }, text);
    const about = { new: "new class", known: `known class, from your ${one.renamable ? "corrections" : "labels"}`, junk: "images that belong nowhere; move them to take them back" }[one.kind];
    this.head.replaceChildren(
      make("p", { class: "eyebrow" }, make("a", { href: "#/" }, "All classes"), ` · ${about}`),
      make("h1", {}, one.colour ? make("span", { class: "dot", style: { background: one.colour } }) : "", one.name),
      make("p", { class: "muted" }, `${counted(one.size, "image", "images")}${one.confidence ? ` · mean confidence ${perCent(one.confidence)}` : ""}${one.found_as && one.found_as !== one.name ? ` · found as ${one.found_as}` : ""}`),
      one.renamable ? make("p", { class: "buttons" }, button("Rename …", () => rename(one), "rename"), ...(fresh ? [button("Merge into …", () => this.merge(), "merge-into"),
        button("Split in two", () => this.halve(), "halve"), button("Junk the class", () => this.junkClass(), "junk-class")] : [])) : "");
    this.tiles.grid.setAttribute("aria-label", `Images of ${one.name}`);
  }

  toolbar() {
    this.told = make("output", { class: "muted" });
    this.slider = make("input", { type: "range", min: 0, max: 100, value: 0, "aria-label": "Confidence threshold", oninput: () => { this.threshold = Number(this.slider.value) / 100; this.draw(); } });
    const order = make("select", { "aria-label": "Order", onchange: () => {
      this.unsureFirst = order.value === "unsure";
      this.threshold = this.unsureFirst ? 1 : 0;
      this.slider.value = String(100 * this.threshold);
      this.draw();
    } }, make("option", { value: "sure" }, "Surest first"), make("option", { value: "unsure" }, "Least sure first"));
    this.label = make("span", {}, "");
    return make("div", { class: "panel tools", role: "group", "aria-label": "Which images" }, order,
      make("label", { class: "slider" }, this.label, this.slider), this.told,
      make("button", { type: "button", class: "quiet", "data-key": "all", onclick: () => this.tiles.selectAll() }, "Select all shown"));
  }

  draw() {
    const fits = (one) => (this.unsureFirst ? one.confidence <= this.threshold : one.confidence >= this.threshold);
    const shown = this.all.filter(fits);
    if (this.unsureFirst) shown.reverse();
    this.label.textContent = `Confidence ${this.unsureFirst ? "up to" : "from"} ${this.threshold.toFixed(2)}`;
    this.told.textContent = `${count(shown.length)} of ${count(this.all.length)} shown`;
    this.tiles.show(shown);
  }

  actions() {
    if (!this.selection.length) return null;
    const button = (text, key, act, strong) => make("button", { type: "button", class: strong ? "strong" : "", "data-key": `do-${key}`, "aria-keyshortcuts": key, onclick: act }, text, " ", make("kbd", { "aria-hidden": "true" }, key));
    return [
      make("strong", {}, `${count(this.selection.length)} selected`),
      button("Move to …", "m", () => this.move(), true),
      this.number === JUNK || this.selection.length === this.all.length ? null : button("Split off …", "s", () => this.split()),
      this.number === JUNK ? null : button("Junk", "j", () => this.junk()),
      make("button", { type: "button", class: "quiet", onclick: () => this.tiles.clear() }, "Clear"),
    ].filter(Boolean);
  }

  ids() { return this.selection.map((one) => one.id); }

  async move() {
    if (!this.selection.length) return;
    const to = await askClass(`Move ${counted(this.selection.length, "image", "images")} to`, { without: [this.number], first: [this.one.looks_like, this.one.near] });
    if (to !== null) await perform({ edit: "move", images: this.ids(), to });
  }

  async split() {
    if (!this.selection.length || this.number === JUNK) return;
    const name = await askName(`Split ${counted(this.selection.length, "image", "images")} off as`, store.state.free_name, "Split off");
    if (name) await perform({ edit: "split", number: this.number, images: this.ids(), name });
  }

  async junk() {
    if (this.selection.length && this.number !== JUNK) await perform({ edit: "junk", images: this.ids() });
  }

  async merge() {
    const into = await askClass(`Merge ${this.one.name} into`, { without: [this.number], first: [this.one.looks_like, this.one.near] });
    if (into !== null && await perform({ edit: "merge", numbers: [this.number], into })) location.hash = `#/class/${into}`;
  }

  async halve() {
    toast("Looking for two parts …");
    await perform({ edit: "halve", number: this.number });
  }

  async junkClass() {
    const sure = await confirmed(`Mark ${this.one.name} as junk?`, `Its ${counted(this.one.size, "image", "images")} will be in no class, nor will what the model puts there later. Undo takes this back.`, "Mark as junk");
    if (sure && await perform({ edit: "junk-class", number: this.number })) location.hash = "#/";
  }

  pressed(key) {
    const act = { m: () => this.move(), s: () => this.split(), j: () => this.junk(), r: () => this.one.renamable && rename(this.one) }[key];
    act?.();
    return Boolean(act);
  }
}
