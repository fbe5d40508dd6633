// Which page is shown, and what belongs to all of them: undo, keys, the bar of actions.

import { onChange, refresh, store } from "/static/api.js";
import { help, perform, toast } from "/static/dialogs.js";
import { classesPage, historyPage, mergeActions } from "/static/home.js";
import { ImagesPage } from "/static/images.js";

const main = document.getElementById("main"), bar = document.getElementById("actions"), undo = document.getElementById("undo");
let images = null; // the page of a class, while it is shown

function actions(content) {
  bar.hidden = !content;
  bar.replaceChildren(...(content ?? []));
}

// Draws anew without losing the place of the keyboard.
function kept(draw) {
  const key = document.activeElement?.dataset?.key;
  draw();
  if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function route(again = false) {
  const [, place, number] = location.hash.split("/");
  const wanted = place === "class" ? Number(number) : place === "junk" ? -1 : null;
  if (wanted !== null) {
    if (images?.number !== wanted) {
      images?.tiles.leave();
      images = new ImagesPage(wanted, actions);
      main.replaceChildren(...images.elements);
      actions(null);
      scrollTo(0, 0);
    }
    kept(() => images.load());
  } else {
    images?.tiles.leave();
    images = null;
    kept(() => {
      main.replaceChildren(...(place === "history" ? historyPage() : classesPage(() => route(true))));
      actions(place === "history" ? null : mergeActions());
    });
    if (!again) scrollTo(0, 0);
  }
  const here = images?.one?.name ?? (place === "history" ? "History" : "Classes");
  document.title = `${here} · ${store.state.run} · autonovel review`;
}

onChange((state) => {
  undo.disabled = state.undo === null;
  undo.title = state.undo === null ? "Nothing to undo" : `Undo: ${state.undo}`;
  const report = document.getElementById("to-report");
  report.hidden = !state.report;
  report.textContent = state.report_older ? "Report (older)" : "Report";
  report.title = state.report_older ? `Made before your last corrections. \`autonovel report\` makes it anew.` : "";
  route(true);
});

undo.addEventListener("click", () => perform({ edit: "undo" }));
document.getElementById("help").addEventListener("click", help);
window.addEventListener("hashchange", () => store.state && route());
window.addEventListener("redraw", () => route(true));
window.addEventListener("focus", () => refresh().catch(() => {})); // another window or a command may have edited
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && !/^(checkbox|range)$/.test(event.target.type ?? "");
  if (document.querySelector("dialog[open]") || typing) return;
  const command = event.ctrlKey || event.metaKey;
  if ((event.key === "u" && !command) || (event.key === "z" && command && !event.shiftKey)) { if (!undo.disabled) undo.click(); }
  else if (event.key === "?") help();
  else if (event.key === "Escape" && images) images.tiles.clear();
  else if (command || event.altKey || !images?.pressed(event.key)) return;
  event.preventDefault();
});

refresh().catch((error) => toast(error.message, { failed: true }));
