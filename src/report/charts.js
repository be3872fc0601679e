"use strict";
// Elements, numbers and the plain charts. Every chart tells its data twice: drawn, and as a table for those who cannot see it.
const colours = ["var(--a)", "var(--b)", "var(--c)", "var(--d)"];
const svgns = "http://www.w3.org/2000/svg";
const el = (tag, attrs = {}, ...kids) => {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(attrs)) node.setAttribute(k, v);
  node.append(...kids);
  return node;
};
const sv = (tag, attrs = {}, text) => {
  const node = document.createElementNS(svgns, tag);
  for (const [k, v] of Object.entries(attrs)) node.setAttribute(k, v);
  if (text !== undefined) node.textContent = text;
  return node;
};
const known = x => x !== null && x !== undefined && Number.isFinite(Number(x));
const num = (x, digits = 4) => known(x) ? Number(x).toLocaleString("en", {maximumFractionDigits: digits}) : "–";
const short = x => Math.abs(x) >= 1e6 ? (x / 1e6).toPrecision(3) + "M" : Math.abs(x) >= 1e4 ? (x / 1e3).toPrecision(3) + "k" : x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential(1) : +x.toPrecision(4) + "";
const percent = (x, digits = 1) => known(x) ? (100 * x).toFixed(digits) + " %" : "–";
const ticks = (lo, hi, n) => {
  const raw = (hi - lo) / n || 1, p = Math.pow(10, Math.floor(Math.log10(raw))), step = [1, 2, 5, 10].map(m => m * p).find(s => s >= raw);
  const out = [];
  for (let t = Math.ceil(lo / step) * step; t <= hi + step * 1e-9; t += step) out.push(+t.toPrecision(12));
  return out;
};
const table = (head, rows, attrs = {}) => {
  const t = el("table", attrs);
  if (head.length) t.append(el("thead", {}, el("tr", {}, ...head.map(h => el("th", {scope: "col"}, h)))));
  t.append(el("tbody", {}, ...rows.map(r => el("tr", {}, ...r.map((c, i) => i || head.length ? el("td", {}, c instanceof Node ? c : String(c)) : el("th", {scope: "row"}, String(c)))))));
  return t;
};
const numbers = (...tables) => el("details", {}, el("summary", {}, "numbers"), ...tables);
const legendOf = items => el("div", {class: "legend"}, ...items.map(([name, colour, extra]) => el("span", {}, el("i", {style: `background:${colour};${extra || ""}`}), name)));
// Charts are drawn at the width they are shown at, so that their words keep their size on a phone.
const full = () => Math.max(280, Math.min(1040, document.getElementById("page").clientWidth - (innerWidth <= 500 ? 32 : 66)));
const half = () => full() < 700 ? full() : Math.floor(full() / 2 - 25);
const frame = (title, ...kids) => el("section", {}, el("h2", {}, title), ...kids.filter(Boolean));
// Rows of cells side by side on a wide page, below one another on a narrow one.
const beside = nodes => {
  const kept = nodes.filter(Boolean);
  return kept.length > 1 ? el("div", {class: "two"}, ...kept) : kept[0] || null;
};

// series: [{name, x, y}]; `from`: where the y axis begins, else at the least value.
function lineChart(title, xlabel, ylabel, series, id, W = full(), from = null) {
  series = series.filter(s => s.y.some(known));
  if (!series.length) return null;
  const H = W < 500 ? 220 : 320, L = 58, R = 12, T = 10, B = 38;
  const xs = series.flatMap(s => s.x).filter(known), ys = series.flatMap(s => s.y).filter(known).sort((a, b) => a - b);
  const x0 = Math.min(...xs), x1 = Math.max(...xs, x0 + 1e-9);
  let y0 = from === null ? ys[0] : from, y1 = ys[Math.min(ys.length - 1, Math.ceil(ys.length * 0.995))];
  if (y1 - y0 < 1e-12) { y0 -= 0.5; y1 += 0.5; }
  const px = x => L + (x - x0) / (x1 - x0) * (W - L - R), py = y => T + (1 - (Math.min(y, y1) - y0) / (y1 - y0)) * (H - T - B);
  const last = s => s.y[s.y.length - 1];
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${series.map(s => `${s.name} ends at ${num(last(s))}`).join(", ")}`, id});
  for (const t of ticks(y0, y1, 5)) svg.append(sv("line", {x1: L, x2: W - R, y1: py(t), y2: py(t), class: "axis"}), sv("text", {x: L - 6, y: py(t) + 4, "text-anchor": "end"}, short(t)));
  for (const t of ticks(x0, x1, W < 500 ? 5 : 8)) svg.append(sv("text", {x: px(t), y: H - B + 16, "text-anchor": "middle"}, short(t)));
  svg.append(sv("text", {x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle"}, xlabel));
  if (ylabel) svg.append(sv("text", {x: 12, y: (H - B + T) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(H - B + T) / 2})`}, ylabel));
  series.forEach((s, i) => {
    let pen = "M";
    const d = s.y.map((y, k) => { if (!known(y) || !known(s.x[k])) { pen = "M"; return ""; } const at = `${pen}${px(s.x[k]).toFixed(1)} ${py(y).toFixed(1)}`; pen = "L"; return at; }).join("");
    const path = sv("path", {d, class: "series", stroke: colours[i % 4], "data-name": s.name, "data-last": last(s), "data-count": s.y.length});
    path.append(sv("title", {}, s.name));
    svg.append(path);
    if (s.y.length <= 30) s.y.forEach((y, k) => { if (known(y) && known(s.x[k])) svg.append(sv("circle", {cx: px(s.x[k]), cy: py(y), r: 3.2, fill: colours[i % 4]})); });
  });
  const pick = s => s.x.map((x, k) => k).filter(k => k % Math.ceil(s.x.length / 12) === 0 || k === s.x.length - 1);
  return frame(title, svg, legendOf(series.map((s, i) => [s.name, colours[i % 4]])), numbers(...series.map(s => table([xlabel, s.name], pick(s).map(k => [num(s.x[k], 1), num(s.y[k], 5)])))));
}

// Squarified: rows of cells along the shorter side, largest first.
function treemap(title, cells, id) {
  cells = cells.filter(c => c.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  if (!cells.length) return null;
  const W = full(), H = Math.min(360, W * 0.7), total = cells.reduce((s, c) => s + c.bytes, 0), svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${total} bytes`, id, "data-total": total});
  let x = 0, y = 0, w = W, h = H, rest = total, i = 0;
  const groups = [...new Set(cells.map(c => c.group || c.name))];
  while (i < cells.length) {
    const along = Math.min(w, h), area = w * h / rest;
    let n = 1, worst = Infinity;
    for (let k = 1; i + k <= cells.length; ++k) {
      const row = cells.slice(i, i + k), sum = row.reduce((s, c) => s + c.bytes, 0) * area, side = sum / along;
      const bad = Math.max(...row.map(c => { const len = c.bytes * area / side; return Math.max(len / side, side / len); }));
      if (bad > worst) break;
      worst = bad; n = k;
    }
    const row = cells.slice(i, i + n), sum = row.reduce((s, c) => s + c.bytes, 0), side = sum * area / along;
    let at = 0;
    for (const c of row) {
      const len = c.bytes * area / side, box = w <= h ? {x: x + at, y, width: len, height: side} : {x, y: y + at, width: side, height: len};
      const rect = sv("rect", {...box, class: "cell", fill: colours[groups.indexOf(c.group || c.name) % 4], "data-bytes": c.bytes, "data-name": c.name});
      rect.append(sv("title", {}, `${c.name}: ${num(c.bytes)} bytes (${(100 * c.bytes / total).toFixed(1)} %)`));
      svg.append(rect);
      if (box.width > 46 && box.height > 16) svg.append(sv("text", {x: box.x + 4, y: box.y + 13, class: "on"}, c.name.slice(0, Math.floor((box.width - 6) / 7))));
      at += len;
    }
    if (w <= h) { y += side; h -= side; } else { x += side; w -= side; }
    rest -= sum; i += n;
  }
  return frame(`${title}: ${num(total)} bytes`, svg, numbers(table(["part", "bytes", "%"], cells.map(c => [c.name, num(c.bytes), (100 * c.bytes / total).toFixed(2)]))));
}

// bars: [{name, value, kind, label}]; beyond `most` only the largest are drawn, the table has them all.
function barChart(title, note, bars, id, {W = full(), most = 40, legend = null} = {}) {
  if (!bars.length) return null;
  const drawn = bars.length > most ? [...bars].sort((a, b) => b.value - a.value).slice(0, most) : bars;
  const room = Math.max(...drawn.map(b => (b.label || short(b.value)).length)) * 6.6 + 12;
  const row = 18, L = Math.min(14 + 6.8 * Math.max(...drawn.map(b => b.name.length)), W * 0.4), H = drawn.length * row + 10, top = Math.max(...bars.map(b => b.value), 1e-300);
  const long = v => Math.max(1, (W - L - room) * Math.max(v, 0) / top), fits = Math.floor((L - 8) / 6.6);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${drawn.slice(0, 12).map(b => `${b.name} ${b.label || short(b.value)}`).join(", ")}`, id});
  drawn.forEach((b, i) => {
    const rect = sv("rect", {x: L, y: 4 + i * row, width: long(b.value), height: row - 5, fill: colours[(b.kind || 0) % 4], "data-value": b.value, "data-name": b.name});
    rect.append(sv("title", {}, `${b.name}: ${b.label || b.value}`));
    svg.append(sv("text", {x: L - 6, y: 15 + i * row, "text-anchor": "end"}, b.name.length > fits ? b.name.slice(0, fits - 1) + "…" : b.name), rect, sv("text", {x: L + 6 + long(b.value), y: 15 + i * row}, b.label || short(b.value)));
  });
  const cut = drawn.length < bars.length ? ` The ${drawn.length} largest of ${bars.length}.` : "";
  return frame(title, el("p", {class: "note"}, note + cut), svg, legend && legendOf(legend), bars.length > 12 ? numbers(table(["", "value"], bars.map(b => [b.name, b.label || short(b.value)]))) : null);
}

// Values on an axis that begins where they do: for scores, whose differences matter and not their size.
function dotChart(title, note, dots, id, W = full()) {
  if (dots.length < 2) return null;
  const row = 26, L = Math.min(18 + 6.8 * Math.max(...dots.map(d => d.name.length)), W * 0.42), R = 64, H = dots.length * row + 26, values = dots.map(d => d.value);
  const least = Math.min(...values), most = Math.max(...values), pad = (most - least) * 0.06 || 0.01, lo = least - pad, hi = most + pad;
  const px = v => L + (v - lo) / (hi - lo) * (W - L - R), fits = Math.floor((L - 12) / 6.6);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${dots.map(d => `${d.name} ${num(d.value)}`).join(", ")}`, id});
  for (const t of ticks(lo, hi, W < 500 ? 3 : 7)) svg.append(sv("line", {x1: px(t), x2: px(t), y1: 2, y2: H - 20, class: "axis"}), sv("text", {x: px(t), y: H - 5, "text-anchor": "middle"}, num(t, 4)));
  dots.forEach((d, i) => {
    const y = 15 + i * row, dot = sv("circle", {cx: px(d.value), cy: y, r: 5.5, fill: d.illegal ? "var(--bad)" : colours[(d.kind || 0) % 4], "data-value": d.value, "data-name": d.name});
    dot.append(sv("title", {}, `${d.name}: ${d.value}`));
    svg.append(sv("line", {x1: L, x2: px(d.value), y1: y, y2: y, class: "axis"}), dot, sv("text", {x: L - 8, y: y + 4, "text-anchor": "end"}, d.name.length > fits ? d.name.slice(0, fits - 1) + "…" : d.name), sv("text", {x: px(d.value) + 10, y: y + 4}, num(d.value, 4)));
  });
  return frame(title, el("p", {class: "note"}, note), svg);
}

// A map of cells: rows {name, cells: [{text, share, colour, title, data, marked}]}, share 0 … 1 is how strong the colour is.
function gridChart(title, note, columns, rows, id, {W = full(), corner = "", legend = null, after = null} = {}) {
  const L = 46, T = 20, row = 26, cell = (W - L) / columns.length, H = T + rows.length * row + 2, dense = cell < 38;
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}. ${note}`, id});
  svg.append(sv("text", {x: 0, y: 13}, corner));
  columns.forEach((name, c) => svg.append(sv("text", {x: L + (c + 0.5) * cell, y: 13, "text-anchor": "middle"}, name)));
  rows.forEach((r, i) => {
    svg.append(sv("text", {x: L - 8, y: T + i * row + 17, "text-anchor": "end"}, r.name));
    r.cells.forEach((c, k) => {
      const box = {x: L + k * cell, y: T + i * row, width: cell, height: row}, ink = c.share > 0.88 ? "on" : c.share > 0.45 ? "mid" : "in";
      svg.append(sv("rect", {...box, class: "cell", fill: "var(--quiet)"}));
      const rect = sv("rect", {...box, class: "cell", fill: c.colour, "fill-opacity": c.share.toFixed(3), ...c.data});
      rect.append(sv("title", {}, c.title));
      svg.append(rect);
      if (c.marked) svg.append(sv("rect", {x: box.x + 2, y: box.y + 2, width: cell - 4, height: row - 4, fill: "none", class: "marked"}));
      svg.append(sv("text", {x: box.x + cell / 2, y: box.y + 17, "text-anchor": "middle", class: ink, style: dense ? "font-size:10px" : ""}, c.text));
    });
  });
  return frame(title, el("p", {class: "note"}, note), svg, legend && legendOf(legend), after);
}
