"use strict";
// Elements, numbers, tables and colours. Every chart tells its data twice: drawn, and as a table for those who cannot see it.
const el = (tag, attrs = {}, ...kids) => {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) if (v !== null && v !== undefined && v !== false) node.setAttribute(k, v);
  node.append(...kids.filter(kid => kid !== null && kid !== undefined && kid !== false));
  return node;
};
const sv = (tag, attrs = {}, text) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attrs)) if (v !== null && v !== undefined) node.setAttribute(k, v);
  if (text !== undefined) node.textContent = text;
  return node;
};
const known = x => x !== null && x !== undefined && x !== "" && Number.isFinite(Number(x));
const num = (x, digits = 4) => known(x) ? Number(x).toLocaleString("en", {maximumFractionDigits: digits}) : "–";
const fixed = (x, digits) => known(x) ? Number(x).toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits}) : "–";
const short = x => {
  const size = Math.abs(x);
  if (size >= 1e9) return +(x / 1e9).toPrecision(3) + "G";
  if (size >= 1e6) return +(x / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return +(x / 1e3).toPrecision(3) + "k";
  return x !== 0 && size < 1e-3 ? Number(x).toExponential(1) : +Number(x).toPrecision(4) + "";
};
const signed = (x, digits = 5) => known(x) ? (x > 0 ? "+" : x < 0 ? "−" : "±") + fixed(Math.abs(x), digits) : "–";
const percent = (x, digits = 1) => known(x) ? (100 * x).toFixed(digits) + " %" : "–";
const time = s => !known(s) ? "–" : s < 100 ? num(s, 1) + " s" : s < 5400 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round(s % 3600 / 60)} min`;
const ticks = (lo, hi, n) => {
  const raw = (hi - lo) / n || 1, p = Math.pow(10, Math.floor(Math.log10(raw))), step = [1, 2, 2.5, 5, 10].map(m => m * p).find(s => s >= raw);
  const out = [];
  for (let t = Math.ceil(lo / step) * step; t <= hi + step * 1e-9; t += step) out.push(+t.toPrecision(12));
  return out;
};

// A colour means one thing on a page: a run, a role of weights, a bit width (light to dark), or an amount (light to dark).
const runColour = i => `var(--run${i % 8})`;
const runDash = i => ["", "7 3", "2 3", "9 3 2 3"][i % 4];
const rampColour = (name, share) => `color-mix(in srgb, var(--${name}) ${Math.round(100 * Math.min(1, Math.max(0, share)))}%, var(--card))`;
const bitColour = (bits, widths) => rampColour("bits", widths.length > 1 ? 0.2 + 0.8 * widths.indexOf(bits) / (widths.length - 1) : 1);
const swatch = (colour, extra = "") => el("i", {class: "swatch", style: `background:${colour};${extra}`});
const line = (colour, dash) => {
  const svg = sv("svg", {class: "key", viewBox: "0 0 26 10", "aria-hidden": "true"});
  svg.append(sv("line", {x1: 1, x2: 25, y1: 5, y2: 5, stroke: colour, "stroke-width": 2.4, "stroke-dasharray": dash || null}));
  return svg;
};
const legendOf = items => el("div", {class: "legend"}, ...items.map(([name, colour, extra]) => el("span", {}, swatch(colour, extra), name)));

const cellOf = c => c instanceof Node ? c : String(c);
// `sort`: headings are buttons that order the rows; a cell sorts by its data-sort, else by its text.
const table = (head, rows, {sort = false, foot = [], ...attrs} = {}) => {
  const t = el("table", attrs);
  if (head.length) t.append(el("thead", {}, el("tr", {}, ...head.map((h, k) => el("th", {scope: "col"}, sort ? sortButton(t, h, k) : cellOf(h))))));
  t.append(el("tbody", {}, ...rows.map(r => el("tr", {}, ...r.map((c, i) => i || head.length ? el("td", {}, cellOf(c)) : el("th", {scope: "row"}, cellOf(c)))))));
  if (foot.length) t.append(el("tfoot", {}, ...foot.map(r => el("tr", {}, ...r.map(c => el("td", {}, cellOf(c)))))));
  return t;
};
function sortButton(t, name, column) {
  const button = el("button", {type: "button", class: "sort"}, name);
  const key = row => { const cell = row.children[column], told = cell.firstElementChild && cell.firstElementChild.dataset.sort; return told !== undefined && told !== null ? told : cell.textContent.replaceAll(",", ""); };
  button.addEventListener("click", () => {
    const body = t.tBodies[0], down = button.dataset.order === "up";
    for (const other of t.querySelectorAll("button.sort")) { delete other.dataset.order; other.closest("th").removeAttribute("aria-sort"); }
    button.dataset.order = down ? "down" : "up";
    button.closest("th").setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...body.rows].sort((a, b) => known(key(a)) && known(key(b)) ? key(a) - key(b) : known(key(a)) ? -1 : known(key(b)) ? 1 : key(a).localeCompare(key(b)));
    body.append(...(down ? sorted.reverse() : sorted));
  });
  return button;
}
const valued = (value, text) => el("span", {"data-sort": known(value) ? value : ""}, text);
const numbers = (...tables) => el("details", {}, el("summary", {}, "numbers"), ...tables);
// A title with `of` names the run where a page has several.
const frame = (title, ...kids) => el("section", {}, el("h2", {}, title), ...kids);
const note = text => text ? el("p", {class: "note"}, text) : null;
const verdict = (held, yes, no) => el("span", {class: held ? "yes" : "no"}, held ? `✓ ${yes}` : `✗ ${no}`);
// Rows of cells side by side on a wide page, below one another on a narrow one.
const beside = nodes => {
  const kept = nodes.filter(Boolean);
  return kept.length > 1 ? el("div", {class: "two"}, ...kept) : kept[0] || null;
};
// Charts are drawn at the width they are shown at, so that their words keep their size on a phone.
const full = () => Math.max(280, Math.min(1040, document.getElementById("page").clientWidth - (innerWidth <= 500 ? 32 : 66)));
const half = () => full() < 700 ? full() : Math.floor(full() / 2 - 25);
const pen = document.createElement("canvas").getContext("2d");
const widthOf = (text, size = 12) => { pen.font = `${size}px system-ui, sans-serif`; return pen.measureText(text).width; };
const fitted = (text, room, size = 12) => {
  if (widthOf(text, size) <= room) return text;
  let n = text.length;
  while (n > 0 && widthOf(text.slice(0, n) + "…", size) > room) --n;
  return n > 1 ? text.slice(0, n) + "…" : "";
};
