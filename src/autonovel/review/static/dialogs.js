// Questions to the person: a name, a class, a close look; and what happened, with the way back.

import { count, edit, make, store, thumbnails } from "/static/api.js";

let hiding = null;

export function toast(text, { undo = false, failed = false } = {}) {
  const box = document.getElementById("toast");
  const back = undo && make("button", { type: "button", onclick: () => perform({ edit: "undo" }) }, "Undo");
  box.replaceChildren(make("div", { class: failed ? "failed" : "" }, make("span", {}, text), back || ""));
  clearTimeout(hiding);
  hiding = setTimeout(() => box.replaceChildren(), failed ? 12000 : 7000);
}

// Makes an edit and tells what became of it; returns whether it was made.
export async function perform(wish) {
  try {
    const told = await edit(wish);
    toast(told.charAt(0).toUpperCase() + told.slice(1) + ".", { undo: wish.edit !== "undo" });
    return true;
  } catch (error) {
    toast(error.message, { failed: true });
    return false;
  }
}

// Shows a dialog and returns what it was closed with, or null.
function asked(title, content, focus) {
  return new Promise((answer) => {
    const dialog = make("dialog", { "aria-label": title, class: "panel" });
    const form = make("form", { method: "dialog" }, make("h2", {}, title), ...content((value) => {
      dialog.returned = value;
      dialog.close();
    }));
    dialog.append(form);
    form.addEventListener("submit", (event) => event.preventDefault());
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    dialog.addEventListener("close", () => { dialog.remove(); answer(dialog.returned ?? null); });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector(focus)?.focus();
    dialog.querySelector(focus)?.select?.();
  });
}

const cancel = (close) => make("button", { type: "button", class: "quiet", onclick: () => close(null) }, "Cancel");

export function askName(title, value, action) {
  return asked(title, (close) => {
    const field = make("input", { type: "text", name: "name", value, maxlength: 120, autocomplete: "off", "aria-label": "Name" });
    const go = () => { if (field.value.trim()) close(field.value.trim()); };
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); go(); } });
    return [field, make("p", { class: "buttons" }, cancel(close), make("button", { type: "button", class: "strong", onclick: go }, action))];
  }, "input");
}

export function confirmed(title, text, action) {
  return asked(title, (close) => [
    make("p", {}, text),
    make("p", { class: "buttons" }, cancel(close), make("button", { type: "button", class: "strong", onclick: () => close(true) }, action)),
  ], ".strong");
}

// Lets a person choose a class, those of `first` before all others: type to narrow the list, arrows and Enter to choose.
export function askClass(title, { without = [], first = [] } = {}) {
  const rank = (one) => (first.includes(one.id) ? first.indexOf(one.id) - first.length : one.kind === "new" ? 1 : 2);
  const offered = store.state.classes.filter((one) => !without.includes(one.id)).sort((a, b) => rank(a) - rank(b));
  return asked(title, (close) => {
    const list = make("ul", { class: "choices", "aria-label": "Classes" });
    const field = make("input", { type: "search", placeholder: "Type a part of its name", "aria-label": "Filter classes", autocomplete: "off" });
    const fill = () => {
      const part = field.value.trim().toLowerCase();
      list.replaceChildren(...offered.filter((one) => one.name.toLowerCase().includes(part)).slice(0, 200).map((one) => choice(one, close)));
      if (!list.children.length) list.append(make("li", { class: "muted" }, "No class is called like that."));
    };
    const buttons = () => [...list.querySelectorAll("button")];
    field.addEventListener("input", fill);
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); buttons()[0]?.click(); }
      if (event.key === "ArrowDown") { event.preventDefault(); buttons()[0]?.focus(); }
    });
    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      (buttons()[buttons().indexOf(document.activeElement) + step] ?? field).focus();
    });
    fill();
    return [field, list, make("p", { class: "buttons" }, cancel(close))];
  }, "input");
}

function choice(one, close) {
  const styles = thumbnails(one.sample).slice(0, 5); // the sheet of the card, which the browser has already
  return make("li", {}, make("button", { type: "button", onclick: () => close(one.id) },
    make("span", { class: "dot", style: { background: one.colour } }),
    make("span", { class: "name" }, one.name),
    make("small", {}, `${one.kind === "known" ? "known, " : ""}${count(one.size)}`),
    make("span", { class: "strip", "aria-hidden": "true" }, ...styles.map((style) => make("i", { style })))));
}

const KEYS = [
  ["arrow keys", "go from image to image"], ["Space", "select or unselect"], ["Shift + arrows, Shift + click", "select a range"],
  ["Ctrl + A", "select all shown"], ["Enter, double click", "look closely"], ["m", "move the selection to another class"],
  ["s", "split the selection off as a class of its own"], ["j", "mark the selection as junk"], ["r", "rename the class"],
  ["u, Ctrl + Z", "undo the last edit"], ["Esc", "clear the selection"], ["?", "this list"],
];

export function help() {
  return asked("Keys", (close) => [
    make("dl", { class: "keys" }, ...KEYS.map(([key, does]) => make("div", {}, make("dt", {}, key), make("dd", {}, does)))),
    make("p", { class: "muted" }, "Every edit is on disk before it shows here. Closing the page loses nothing."),
    make("p", { class: "buttons" }, make("button", { type: "button", class: "strong", onclick: () => close(null) }, "Close")),
  ], ".strong");
}

// A close look at one of `items`; arrows go on to its neighbours.  Returns the place where it ended.
export function look(items, start) {
  let at = start;
  const picture = make("img", { alt: "" }), caption = make("p", { class: "caption" });
  const show = () => {
    const one = items[at];
    picture.src = `/image/${store.state.key}/${one.row}`;
    picture.alt = one.id;
    caption.replaceChildren(make("strong", {}, one.id), ` · confidence ${one.confidence.toFixed(2)}${one.look ? ` · ${one.look}` : ""}${one.labelled ? " · labelled" : ""} · ${count(at + 1)} of ${count(items.length)}`);
  };
  show();
  const step = (by) => { at = Math.min(Math.max(at + by, 0), items.length - 1); show(); };
  const told = asked("Image", (close) => [
    picture, caption,
    make("p", { class: "buttons" }, make("button", { type: "button", onclick: () => step(-1), "aria-label": "Previous image" }, "←"),
      make("button", { type: "button", onclick: () => step(1), "aria-label": "Next image" }, "→"),
      make("button", { type: "button", class: "strong", onclick: () => close(null) }, "Close")),
  ], ".strong");
  document.querySelector("dialog:last-of-type").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); step(by); }
  });
  return told.then(() => at);
}
