// The ids of some images, to be copied: into the clipboard, and in a field that can be marked by hand.
"use strict";

async function copyIds(places, into, button) {
  const label = button.dataset.label || button.textContent;
  button.dataset.label = label;
  button.textContent = "Collecting …";
  const list = await namesOfAll(places);
  const field = make("textarea", { readonly: "", "aria-label": `Ids of ${counted(list.length, "image", "images")}, one on each line` });
  field.value = list.join("\n");
  into.replaceChildren(make("div", { class: "box" }, field));
  let copied = false;
  try {
    await navigator.clipboard.writeText(field.value);
    copied = true;
  } catch {
    field.select();
  }
  button.textContent = copied ? `Copied ${list.length.toLocaleString("en")}` : "Marked below: press Ctrl+C";
  setTimeout(() => { button.textContent = label; }, 4000);
}
