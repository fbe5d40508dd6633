// The page of one class, or of the junk: all its images by confidence or by how known they look, and what can be done
// with them.

import { classOf, count, counted, imagesOf, make, perCent, store } from "/static/api.js";
import { askClass, askName, confirmed, perform, toast } from "/static/dialogs.js";
import { rename } from "/static/home.js";
import { Tiles } from "/static/tiles.js";

const JUNK = -1;

// The known classes that images look like, with how many do: [[number, n], …], the most frequent first.
function looks(images) {
  const counts = new Map();
  for (const one of images) if (one.look) counts.set(one.nearest, (counts.get(one.nearest) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

export class ImagesPage {
  constructor(number, onActions) {
    this.number = number;
    this.onActions = onActions;
    this.selection = [];
    this.all = [];
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
      this.all = found.rows.map((row, i) => ({ row, id: found.ids[i], confidence: found.confidence[i], labelled: found.labelled[i], moved: found.moved[i], known: found.looks_known[i], nearest: found.nearest_known[i] }));
      for (const one of this.all) one.look = one.known > store.state.looks_known_above ? `looks like ${classOf(one.nearest).name} ${perCent(one.known)}` : "";
    } catch (error) {
      toast(error.message, { failed: true });
      return;
    }
    this.drawHead();
    this.offerOrders();
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
    this.order = make("select", { "aria-label": "Order", onchange: () => { this.begin(); this.draw(); } }, make("option", { value: "sure" }, "Surest first"));
    this.label = make("span", {}, "");
    return make("div", { class: "panel tools", role: "group", "aria-label": "Which images" }, this.order,
      make("label", { class: "slider" }, this.label, this.slider), this.told,
      make("button", { type: "button", class: "quiet", "data-key": "all", onclick: () => this.tiles.selectAll() }, "Select all shown"));
  }

  // Puts the threshold where the chosen order begins: at all images, or at those that look known.
  begin() {
    const [order] = this.order.value.split("-");
    this.threshold = { sure: 0, unsure: 1, like: store.state.looks_known_above }[order];
    this.slider.value = String(100 * this.threshold);
    this.slider.setAttribute("aria-label", order === "like" ? "Threshold of looking known" : "Confidence threshold");
  }

  // Offers the orders there are: by confidence, and by the known classes that images here look like, if they do.
  offerOrders() {
    const was = this.order.value, looking = this.all.some((one) => one.known !== null);
    const offered = [["sure", "Surest first"], ["unsure", "Least sure first"], ...(looking ? [["like", "Looks known first"]] : []),
      ...looks(this.all).map(([number, n]) => [`like-${number}`, `Looks like ${classOf(number).name} (${count(n)})`])];
    this.order.replaceChildren(...offered.map(([value, text]) => make("option", { value }, text)));
    this.order.value = [was, looking && was.startsWith("like") ? "like" : "sure"].find((one) => offered.some(([value]) => value === one));
    if (this.order.value !== was) this.begin(); // the last image that looked so went elsewhere
  }

  draw() {
    const [order, like] = this.order.value.split("-"), upTo = order === "unsure";
    const measure = order === "like" ? (one) => one.known : (one) => one.confidence;
    const asked = order === "like" ? this.all.filter((one) => one.known !== null && (!like || one.nearest === Number(like))) : this.all;
    const shown = asked.filter((one) => (upTo ? measure(one) <= this.threshold : measure(one) >= this.threshold));
    shown.sort((a, b) => (upTo ? measure(a) - measure(b) : measure(b) - measure(a)));
    this.label.textContent = `${order === "like" ? "Looks known" : "Confidence"} ${upTo ? "up to" : "from"} ${this.threshold.toFixed(2)}`;
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
    const looking = this.selection.filter((one) => one.look).length;
    const likely = 2 * looking > this.selection.length ? looks(this.selection).map(([number]) => number) : [];
    const to = await askClass(`Move ${counted(this.selection.length, "image", "images")} to`, { without: [this.number], first: [...likely, this.one.looks_like, this.one.known_again, this.one.near] });
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
    const into = await askClass(`Merge ${this.one.name} into`, { without: [this.number], first: [this.one.looks_like, this.one.known_again, this.one.near] });
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
