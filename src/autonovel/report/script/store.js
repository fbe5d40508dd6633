// What all parts of the page share: the data, the sheets of thumbnails and the names of the images.
// An image is a place: images lie class by class, the surest first, and so do their thumbnails on the sheets.
"use strict";

const data = JSON.parse(document.getElementById("report-data").textContent);
const LABELLED = 1, BY_HAND = 2;
const total = data.confidence.length;
const byId = (id) => document.getElementById(id);
const counted = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const confidence = (place) => data.confidence[place] / 10000;
const perCent = (share) => `${(share < 1 ? Math.min(100 * share, 99.9) : 100).toFixed(1)} %`; // only a whole is 100

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Class of a place, by binary search among the first places of the classes that have images.
const filled = data.classes.filter((one) => one.end > one.start);
function classAt(place) {
  let low = 0, high = filled.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (filled[middle].start <= place) low = middle; else high = middle - 1;
  }
  return filled[low];
}

// Addresses of sheets: files beside the page, or what the page holds, made a blob when it is first shown.
const addresses = new Map();
function sheetAddress(number) {
  if (data.sheets.folder) return `${data.sheets.folder}/sheet-${number}.webp`;
  if (!addresses.has(number)) {
    const bytes = Uint8Array.from(atob(byId(`sheet-${number}`).textContent), (c) => c.charCodeAt(0));
    addresses.set(number, URL.createObjectURL(new Blob([bytes], { type: "image/webp" })));
  }
  return addresses.get(number);
}

// Style of an element that shows the thumbnail of a place within a square of `side` pixels; null without pictures.
function thumbnail(place, side) {
  const { per, columns, width, height } = data.sheets;
  if (!width) return null;
  const number = Math.floor(place / per), at = place % per, here = Math.min(per, total - number * per);
  const across = Math.min(columns, here), down = Math.ceil(here / columns);
  const scale = side / Math.max(width, height), w = width * scale, h = height * scale;
  return {
    width: `${w}px`,
    height: `${h}px`,
    backgroundImage: `url("${sheetAddress(number)}")`,
    backgroundSize: `${across * w}px ${down * h}px`,
    backgroundPosition: `${-(at % columns) * w}px ${-Math.floor(at / columns) * h}px`,
  };
}

// Names come a sheet at a time, from the page or from a script beside it: a page from disk cannot fetch.
const names = new Map();
const coming = new Map();
function namesOf(number) {
  if (names.has(number)) return Promise.resolve(names.get(number));
  if (!data.sheets.folder) {
    names.set(number, JSON.parse(byId(`names-${number}`).textContent));
    return Promise.resolve(names.get(number));
  }
  if (!coming.has(number)) {
    coming.set(number, new Promise((done, failed) => {
      const script = make("script", { src: `${data.sheets.folder}/names-${number}.js` });
      script.addEventListener("load", () => { script.remove(); done(names.get(number)); });
      script.addEventListener("error", () => { script.remove(); coming.delete(number); failed(new Error("the files beside this page are missing")); });
      document.head.append(script);
    }));
  }
  return coming.get(number);
}
window.autonovelNames = (number, list) => names.set(number, list);

const nameIfThere = (place) => names.get(Math.floor(place / data.sheets.per))?.[place % data.sheets.per];
const nameOf = async (place) => (await namesOf(Math.floor(place / data.sheets.per)))[place % data.sheets.per];

// All names of many places; an image without a name, because files are missing, is left out.
async function namesOfAll(places) {
  const numbers = [...new Set(places.map((place) => Math.floor(place / data.sheets.per)))];
  await Promise.allSettled(numbers.map(namesOf));
  return places.map(nameIfThere).filter((name) => name !== undefined);
}

function about(place) {
  const one = classAt(place), flags = data.flags[place];
  const parts = [`${flags & LABELLED ? "labelled " : ""}${one.name}`, `confidence ${perCent(confidence(place))}`];
  if (flags & BY_HAND) parts.push("put here by hand");
  if (data.truth && data.trueClasses.length) parts.push(`true class ${data.trueClasses[data.truth[place]].name}`);
  return parts.join(" · ");
}
