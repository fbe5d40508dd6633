// The first page: a card per class, and the history of edits.

import { count, counted, classOf, make, perCent, store, thumbnails } from "/static/api.js";
import { askName, perform } from "/static/dialogs.js";

const chosen = new Set(); // classes ticked for merging

export function classesPage(redraw) {
  const { state } = store;
  const fresh = state.classes.filter((one) => one.kind === "new"), known = state.classes.filter((one) => one.kind === "known");
  const look = fresh.reduce((sum, one) => sum + one.look_known, 0);
  for (const number of [...chosen]) if (!fresh.some((one) => one.id === number)) chosen.delete(number);
  return [
    make("header", { class: "title" },
      make("p", { class: "eyebrow" }, `autonovel review · ${state.run} · recipe ${state.recipe}`),
      make("h1", {}, `${counted(fresh.length, "new class", "new classes")} in ${counted(state.unlabelled, "unlabelled image", "unlabelled images")}, beside ${counted(known.length, "known class", "known classes")}.`),
      make("p", { class: "lead" }, "Look, name, merge, split, move. Every change is saved at once and can be undone."),
      state.missing ? make("p", { class: "warning" }, state.missing) : null,
      state.unreadable ? make("p", { class: "muted" }, `${counted(state.unreadable, "file", "files")} could not be read.`) : null),
    make("h2", {}, "New classes"),
    look ? make("p", { class: "note" }, `${counted(look, "image looks", "images look")} more like a known class. The page of a class shows its own by the order “Looks known first”; move them where they belong.`) : "",
    make("div", { class: "cards" }, ...fresh.map((one) => card(one, redraw))),
    make("h2", {}, "Known classes"),
    make("p", { class: "note" }, `They come from your labels and keep their names${known.some((one) => one.renamable) ? ", except those that your corrections made known" : ""}; images can be moved in and out.`),
    make("div", { class: "cards small" }, ...known.map((one) => card(one, redraw))),
    ...(state.junk.size ? [make("h2", {}, "Junk"), make("div", { class: "cards small" }, junkCard(state.junk))] : []),
  ];
}

function card(one, redraw) {
  const fresh = one.kind === "new", near = one.near === null ? null : classOf(one.near), like = one.looks_like === null ? null : classOf(one.looks_like);
  const again = one.known_again === null || like?.id === one.known_again ? null : classOf(one.known_again);
  const tick = fresh && make("input", {
    type: "checkbox", "aria-label": `Choose ${one.name} for merging`, "data-key": `tick-${one.id}`,
    onchange: (event) => { event.target.checked ? chosen.add(one.id) : chosen.delete(one.id); redraw(); },
  });
  if (tick) tick.checked = chosen.has(one.id);
  return make("article", { class: "panel card" + (chosen.has(one.id) ? " chosen" : ""), "aria-label": one.name },
    make("header", {},
      tick || null,
      make("span", { class: "dot", style: { background: one.colour } }),
      make("h3", {}, make("a", { href: `#/class/${one.id}`, "data-key": `open-${one.id}` }, one.name)),
      make("span", { class: "muted" }, `${counted(one.size, "image", "images")}${one.confidence === null ? "" : ` · confidence ${perCent(one.confidence)}`}`),
      one.renamable ? make("button", { type: "button", class: "quiet", "data-key": `rename-${one.id}`, "aria-label": `Rename ${one.name}`, onclick: () => rename(one) }, "Rename") : null),
    strip(one),
    like ? make("p", { class: "hint" }, `${perCent(one.looks_like_share)} of its images look like `, make("a", { href: `#/class/${like.id}`, "data-key": `like-${one.id}` }, like.name), ", a known class: merge them if they are the same") : null,
    again ? make("p", { class: "hint" }, "By its features it lies where ", make("a", { href: `#/class/${again.id}`, "data-key": `again-${one.id}` }, again.name), " does, a known class: merge them if they are the same") : null,
    !like && one.look_known ? make("p", { class: "hint" }, make("a", { href: `#/class/${one.id}`, "data-key": `known-${one.id}` }, counted(one.look_known, "image", "images")), ` ${one.look_known === 1 ? "looks" : "look"} more like a known class`) : null,
    near && one.near_share > 0 ? make("p", { class: "hint" }, "Nearest: ", make("a", { href: `#/class/${near.id}`, "data-key": `near-${one.id}` }, near.name), `, the second choice for ${perCent(one.near_share)} of its images`) : null);
}

function strip(one) {
  const styles = thumbnails(one.sample);
  if (store.state.missing || !styles.length) return "";
  return make("a", { class: "thumbnails", href: `#/class/${one.id}`, tabindex: "-1", "aria-hidden": "true" }, ...styles.map((style) => make("i", { style })));
}

function junkCard(junk) {
  return make("article", { class: "panel card", "aria-label": "Junk" },
    make("header", {}, make("h3", {}, make("a", { href: "#/junk", "data-key": "open-junk" }, "Junk")),
      make("span", { class: "muted" }, `${counted(junk.size, "image", "images")} that belong nowhere`)),
    strip({ id: "junk", sample: junk.sample }));
}

export async function rename(one) {
  const name = await askName(`Rename ${one.name}`, one.name, "Rename");
  if (name && name !== one.name) await perform({ edit: "rename", number: one.id, name });
}

// The bar below the page while classes are ticked.
export function mergeActions() {
  const ticked = store.state.classes.filter((one) => chosen.has(one.id)).sort((a, b) => b.size - a.size);
  if (!ticked.length) return null;
  const [into, ...others] = ticked;
  const merge = async () => {
    if (await perform({ edit: "merge", numbers: others.map((one) => one.id), into: into.id })) chosen.clear();
  };
  return [
    make("strong", {}, counted(ticked.length, "class", "classes")),
    ticked.length > 1
      ? make("button", { type: "button", class: "strong", "data-key": "merge", onclick: merge }, `Merge into ${into.name}`)
      : make("span", { class: "muted" }, "Tick another class to merge the two."),
    make("button", { type: "button", class: "quiet", onclick: () => { chosen.clear(); window.dispatchEvent(new Event("redraw")); } }, "Clear"),
  ];
}

export function historyPage() {
  const { state } = store;
  const rows = state.history.map((one) => make("tr", { class: one.undo ? "undo" : one.in_force ? "" : "gone" },
    make("td", { class: "number" }, count(one.number)), make("td", {}, one.told), make("td", { class: "muted" }, new Date(one.time).toLocaleString())));
  return [
    make("header", { class: "title" }, make("p", { class: "eyebrow" }, `autonovel review · ${state.run}`), make("h1", {}, `${counted(state.edits, "edit", "edits")} so far`),
      make("p", { class: "lead" }, "Undo takes back the last one in force. What was taken back is shown struck through.")),
    rows.length ? make("div", { class: "panel scroll history" }, make("table", {}, make("tbody", {}, ...rows))) : make("p", { class: "muted" }, "Nothing has been changed yet."),
  ];
}
