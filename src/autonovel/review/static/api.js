// The server's side of things: the classes as they are, and edits one after the other.

export const store = { state: null };
const listeners = new Set();
let queue = Promise.resolve();

export const onChange = (listener) => listeners.add(listener);

export async function refresh() {
  take(await ask("/api/state"));
}

export function imagesOf(number) {
  return ask("/api/images/" + (number < 0 ? "junk" : number));
}

// Edits wait for each other, so that each is based on the state that the one before left behind.
export function edit(wish) {
  const done = queue.then(() => send(wish));
  queue = done.catch(() => {});
  return done;
}

async function send(wish) {
  const body = JSON.stringify({ edit: wish, based_on: store.state.edits });
  try {
    const answer = await ask("/api/edit", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    take(answer.state);
    return answer.told;
  } catch (error) {
    if (error.status === 409) await refresh(); // somebody else was faster: show what they did
    throw error;
  }
}

async function ask(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch {
    throw new Error("The server does not answer, and nothing was changed. Start autonovel review again.");
  }
  const content = await answer.json().catch(() => ({ error: "The server's answer makes no sense." }));
  if (!answer.ok) throw Object.assign(new Error(sentence(content.error)), { status: answer.status });
  return content;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function take(state) {
  const changed = !store.state || store.state.edits !== state.edits;
  store.state = state;
  if (changed) listeners.forEach((listener) => listener(state));
}

export const classOf = (number) => store.state.classes.find((one) => one.id === number);
export const count = (number) => number.toLocaleString("en");
export const counted = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;
export const perCent = (share) => `${(100 * share).toFixed(share < 0.9995 && share > 0.9949 ? 1 : 0)} %`;

// An element: make("p", { class: "muted", onclick: … }, "text", another)
export function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...content.filter((part) => part !== null && part !== undefined));
  return element;
}

// Thumbnails: rows → one sheet; returns for each row the style that shows it.
export function thumbnails(rows) {
  const { key, missing, cells } = store.state, styles = [];
  for (let start = 0; start < rows.length; start += cells.most) {
    const some = rows.slice(start, start + cells.most);
    const lines = Math.ceil(some.length / cells.columns);
    some.forEach((_, place) => {
      const column = place % cells.columns, line = Math.floor(place / cells.columns);
      styles.push(missing ? {} : {
        backgroundImage: `url("/sheet/${key}?rows=${some.join(",")}")`,
        backgroundSize: `${100 * cells.columns}% ${100 * lines}%`,
        backgroundPosition: `${(100 * column) / (cells.columns - 1)}% ${lines > 1 ? (100 * line) / (lines - 1) : 0}%`,
      });
    });
  }
  return styles;
}
