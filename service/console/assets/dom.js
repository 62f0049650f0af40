// Elements are made of text, never of markup: names, labels and errors are written by strangers.

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let saying = 0;

// Tell what has happened, to eyes and to screen readers, for some seconds.
export function say(message) {
  const said = document.getElementById("said");
  said.textContent = message;
  said.classList.add("shown");
  clearTimeout(saying);
  saying = setTimeout(() => said.classList.remove("shown"), 6000);
}

const WHAT_TO_DO = {
  unauthorised: "Your session is over. Load this page again and log in.",
  forbidden: "Your key does not cover this. Ask whoever runs the service for one that does.",
  worker_unavailable: "No worker answers just now. Try again in a moment; the overview shows the workers.",
  data_gone: "Whoever runs the service must act: the files of Redis were removed. Export the graphs while it answers.",
  rate_limited: "The service has much to do just now. Try again in a moment.",
  unknown_graph: "The overview lists the graphs there are.",
  unreachable: "Check that the service runs, and load this page again.",
  out_of_memory: "Delete a graph that nobody needs, or give the worker more memory.",
  unbounded: "Edges without a limit lead from a source to a sink: give one of them a capacity.",
  version_conflict: "Somebody else has changed the graph. Look at it again, then repeat.",
};

export function problemBox(error, again) {
  const hint = WHAT_TO_DO[error.code];
  return h("div", { class: "notice bad", role: "alert" },
    h("strong", {}, sentence((error.told && error.told.title) || "That did not work")), " ",
    h("span", {}, error.message), hint ? h("p", {}, hint) : null,
    error.told?.request_id ? h("p", { class: "dim small" }, `${error.code}, request ${error.told.request_id}`) : null,
    again ? h("button", { onclick: again }, "Try again") : null);
}

// A title before what it is about.
const sentence = (title) => (/[.:]$/.test(title) ? title : `${title}:`);

export function dataTable(caption, columns, rows, ifEmpty) {
  if (!rows.length) return h("p", { class: "empty" }, ifEmpty);
  const cell = (tag, value, column, more = {}) =>
    h(tag, { class: column.figure ? "n" : column.class || null, ...more }, value);
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => cell("th", column.name, column, { scope: "col" })))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, at) => cell("td", value, columns[at], { title: ifLong(value) })))))));
}

// What a cell may be too narrow for.
function ifLong(value) {
  const text = String(value?.textContent ?? value ?? "");
  return text.length > 20 ? text : null;
}

// Digits in groups of three; a decimal string is left exact.
export function number(value) {
  if (value === null || value === undefined) return "–";
  const [whole, fraction] = String(value).split(".");
  if (!/^-?\d+$/.test(whole)) return String(value) === "inf" ? "∞" : String(value);
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f").replace("-", "−");
  return fraction ? `${grouped}.${fraction}` : grouped;
}

export function signed(value) {
  const shown = number(value);
  return /^[−0]/.test(shown) || shown === "–" ? shown : `+${shown}`;
}

export function bytes(count) {
  let value = Number(count);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024 || unit === "GiB") return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return "";
}

export function share(used, budget) {
  return budget ? `${bytes(used)} of ${bytes(budget)}` : "–";
}

export function milliseconds(value) {
  return value < 0.05 ? "under 0.1 ms" : `${value.toFixed(1)} ms`;
}

export function span(seconds) {
  const s = Math.max(0, seconds);
  if (s < 1) return `${Math.round(1000 * s)} ms`;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  return s < 86400 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
}

export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  return seconds < 1 ? "now" : `${span(seconds)} ago`;
}

export function bar(fraction, label) {
  const known = Number.isFinite(fraction);
  return h("progress", { max: 1, ...(known ? { value: fraction } : {}), "aria-label": label });
}

export const may = (scope) => {
  const order = ["read", "update", "admin"];
  return order.indexOf(document.documentElement.dataset.scope) >= order.indexOf(scope);
};

export const cutOff = (text, most = 60) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
