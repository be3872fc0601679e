// Bars, dots, intervals, maps of cells and the treemap. Labels are measured, and stand above their bars where a page is narrow.

// bars: [{name, value, colour, label}]; beyond `most` only the largest are drawn, the table has them all.
function barChart(title, text, bars, id, {W = full(), most = 40, legend = null} = {}) {
  if (!bars.length) return null;
  const drawn = bars.length > most ? [...bars].sort((a, b) => b.value - a.value).slice(0, most) : bars;
  const labels = drawn.map(b => b.label || short(b.value)), room = Math.max(...labels.map(t => widthOf(t))) + 12, widest = Math.max(...drawn.map(b => widthOf(b.name))) + 12;
  const above = widest > W * 0.4, L = above ? 0 : widest, row = above ? 34 : 20, H = drawn.length * row + 8, top = Math.max(...bars.map(b => b.value), 1e-300);
  const long = v => Math.max(1, (W - L - room) * Math.max(v, 0) / top);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${drawn.slice(0, 12).map((b, i) => `${b.name} ${labels[i]}`).join(", ")}`, id});
  drawn.forEach((b, i) => {
    const y = 4 + i * row + (above ? 15 : 0);
    const rect = sv("rect", {x: L, y, width: long(b.value), height: 14, fill: b.colour || runColour(0), class: "bar", "data-value": b.value, "data-name": b.name});
    rect.append(sv("title", {}, `${b.name}: ${b.label || b.value}`));
    svg.append(above ? sv("text", {x: 0, y: y - 4}, fitted(b.name, W)) : sv("text", {x: L - 8, y: y + 11, "text-anchor": "end"}, b.name), rect, sv("text", {x: L + 6 + long(b.value), y: y + 11}, labels[i]));
  });
  const cut = drawn.length < bars.length ? ` The ${drawn.length} largest of ${bars.length}.` : "";
  return frame(title, note(text + cut), svg, legend && legendOf(legend), bars.length > 12 ? numbers(table(["", "value"], bars.map(b => [b.name, b.label || short(b.value)]))) : null);
}

// Values on an axis that begins where they do: for scores, whose differences matter and not their size. A dot may have an
// interval (low, high); `zero` draws a line at 0, `mark` one elsewhere.
function dotChart(title, text, dots, id, {W = full(), zero = false, mark = null, digits = 4, least = 2, after = null} = {}) {
  dots = dots.filter(d => known(d.value));
  if (dots.length < least) return null;
  const widest = Math.max(...dots.map(d => widthOf(d.name))) + 14, above = widest > W * 0.4, L = above ? 8 : widest, row = above ? 38 : 26, R = widthOf(fixed(-1.11111, digits)) + 22, H = dots.length * row + 26;
  const values = dots.flatMap(d => [d.value, known(d.low) ? d.low : d.value, known(d.high) ? d.high : d.value]).concat(zero ? [0] : [], mark === null ? [] : [mark]);
  const small = Math.min(...values), large = Math.max(...values), pad = (large - small) * 0.06 || 0.01, lo = small - pad, hi = large + pad;
  const px = v => L + (v - lo) / (hi - lo) * (W - L - R), tell = v => zero ? signed(v, digits) : fixed(v, digits);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${dots.map(d => `${d.name} ${tell(d.value)}${known(d.low) ? ` (${tell(d.low)} to ${tell(d.high)})` : ""}`).join(", ")}`, id});
  const shown = ticks(lo, hi, W < 500 ? 3 : 6);
  for (const t of shown) svg.append(sv("line", {x1: px(t), x2: px(t), y1: 2, y2: H - 20, class: "axis"}), sv("text", {x: px(t), y: H - 5, "text-anchor": "middle"}, num(t, digits + 1)));
  for (const at of [zero ? 0 : null, mark]) if (at !== null) svg.append(sv("line", {x1: px(at), x2: px(at), y1: 2, y2: H - 20, class: "ideal"}));
  dots.forEach((d, i) => {
    const y = (above ? 26 : 15) + i * row, colour = d.colour || runColour(0), right = Math.max(px(d.value), known(d.high) ? px(d.high) : 0);
    const dot = sv("circle", {cx: px(d.value), cy: y, r: 5.5, fill: d.illegal ? "var(--card)" : colour, stroke: d.illegal ? "var(--bad)" : colour, "stroke-width": 2, "data-value": d.value, "data-name": d.name, "data-low": d.low, "data-high": d.high});
    dot.append(sv("title", {}, `${d.name}: ${d.value}${known(d.low) ? `, ${d.low} to ${d.high}` : ""}`));
    if (known(d.low)) svg.append(sv("line", {x1: px(d.low), x2: px(d.high), y1: y, y2: y, stroke: colour, "stroke-width": 2.5}));
    else svg.append(sv("line", {x1: above ? 8 : L, x2: px(d.value), y1: y, y2: y, class: "axis"}));
    svg.append(dot, above ? sv("text", {x: 0, y: y - 10}, fitted(d.name, W)) : sv("text", {x: L - 10, y: y + 4, "text-anchor": "end"}, d.name), sv("text", {x: right + 10, y: y + 4}, tell(d.value)));
  });
  return frame(title, note(text), svg, after);
}

// A map of cells: rows {name, cells: [{text, share, title, data, marked}]}, share 0 … 1 is how dark a cell is.
function gridChart(title, text, columns, rows, id, {W = full(), corner = "", legend = null, after = null} = {}) {
  const L = 46, T = 20, row = 26, cell = (W - L) / columns.length, H = T + rows.length * row + 2, size = cell < 38 ? 10 : 12;
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}. ${text}`, id});
  svg.append(sv("text", {x: 0, y: 13}, corner));
  columns.forEach((name, c) => svg.append(sv("text", {x: L + (c + 0.5) * cell, y: 13, "text-anchor": "middle"}, fitted(name, cell))));
  rows.forEach((r, i) => {
    svg.append(sv("text", {x: L - 8, y: T + i * row + 17, "text-anchor": "end"}, r.name));
    r.cells.forEach((c, k) => {
      const box = {x: L + k * cell, y: T + i * row, width: cell, height: row};
      const rect = sv("rect", {...box, class: "cell", fill: rampColour("amount", 0.06 + 0.94 * c.share), ...c.data});
      rect.append(sv("title", {}, c.title));
      svg.append(rect);
      if (c.marked) svg.append(sv("rect", {x: box.x + 2, y: box.y + 2, width: cell - 4, height: row - 4, fill: "none", class: "marked"}));
      svg.append(sv("text", {x: box.x + cell / 2, y: box.y + 17, "text-anchor": "middle", class: c.share > 0.42 ? "on" : "in", style: `font-size:${size}px`}, fitted(c.text, cell - 2, size)));
    });
  });
  return frame(title, note(text), svg, legend, after);
}

const roles = {embedding: "embedding", attention: "attention", mlp: "MLP", other: "other weights", format: "format"};
function roleOf(part) {
  const name = part.replace(/^weights: /, "").toLowerCase();
  if (/token|embed|bigram|table/.test(name) && !/tensor table/.test(name)) return "embedding";
  if (/query|key|value|output|attn|qo|kv/.test(name)) return "attention";
  if (/^up$|^down$|mlp|gate$|bank\.(up|down)/.test(name)) return "mlp";
  return /^weights: |scale|halves|vector|bank\./.test(part.toLowerCase()) ? "other" : "format";
}

// Squarified: rows of cells along the shorter side, largest first.
function squares(cells, W, H) {
  const out = [];
  let x = 0, y = 0, w = W, h = H, rest = cells.reduce((s, c) => s + c.bytes, 0), i = 0;
  while (i < cells.length) {
    const along = Math.min(w, h), area = w * h / rest;
    let n = 1, worst = Infinity;
    for (let k = 1; i + k <= cells.length; ++k) {
      const row = cells.slice(i, i + k), side = row.reduce((s, c) => s + c.bytes, 0) * area / along;
      const bad = Math.max(...row.map(c => { const len = c.bytes * area / side; return Math.max(len / side, side / len); }));
      if (bad > worst) break;
      worst = bad; n = k;
    }
    const row = cells.slice(i, i + n), sum = row.reduce((s, c) => s + c.bytes, 0), side = sum * area / along;
    let at = 0;
    for (const c of row) {
      const len = c.bytes * area / side;
      out.push({...c, box: w <= h ? {x: x + at, y, width: len, height: side} : {x, y: y + at, width: side, height: len}});
      at += len;
    }
    if (w <= h) { y += side; h -= side; } else { x += side; w -= side; }
    rest -= sum; i += n;
  }
  return out;
}

function treemap(title, parts, id) {
  const cells = parts.filter(c => c.bytes > 0).map(c => ({...c, role: roleOf(c.name)})).sort((a, b) => b.bytes - a.bytes);
  if (!cells.length) return null;
  const W = full(), H = Math.min(340, W * 0.75), total = cells.reduce((s, c) => s + c.bytes, 0), svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${num(total)} bytes; ${cells.slice(0, 6).map(c => `${c.name} ${num(c.bytes)}`).join(", ")}`, id, "data-total": total});
  for (const c of squares(cells, W, H)) {
    const rect = sv("rect", {...c.box, class: "part", fill: rampColour(`role-${c.role}`, 0.36), stroke: `var(--role-${c.role})`, "data-bytes": c.bytes, "data-name": c.name, "data-role": c.role}), name = c.name.replace(/^weights: /, "");
    rect.append(sv("title", {}, `${c.name}: ${num(c.bytes)} bytes (${(100 * c.bytes / total).toFixed(1)} %)`));
    svg.append(rect);
    const room = c.box.width - 12;
    if (room > 24 && c.box.height > 20 && fitted(name, room)) svg.append(sv("text", {x: c.box.x + 6, y: c.box.y + 16, class: "in"}, fitted(name, room)));
    if (room > 24 && c.box.height > 36 && widthOf(num(c.bytes)) < room) svg.append(sv("text", {x: c.box.x + 6, y: c.box.y + 31, class: "in"}, num(c.bytes)));
  }
  const sums = Object.keys(roles).map(role => [role, cells.filter(c => c.role === role).reduce((s, c) => s + c.bytes, 0)]).filter(([, bytes]) => bytes > 0);
  return frame(`${title}: ${num(total)} bytes`, svg, legendOf(sums.map(([role, bytes]) => [`${roles[role]} ${percent(bytes / total)}`, rampColour(`role-${role}`, 0.36), `border:2px solid var(--role-${role})`])),
    numbers(table(["part", "role", "bytes", "%"], cells.map(c => [c.name, roles[c.role], num(c.bytes), (100 * c.bytes / total).toFixed(2)]))));
}

// What is used of a limit, as a bar; beyond the limit it is marked with words too.
function meter(name, used, limit, unit, id, tell = num) {
  if (!known(used) || !known(limit) || !(limit > 0)) return null;
  const over = used > limit, share = used / limit;
  return el("div", {class: "meter"}, el("span", {class: "what"}, name), el("div", {class: "rail", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": limit, "aria-valuenow": used, id},
    el("div", {class: over ? "fill over" : "fill", style: `width:${Math.min(100, 100 * share).toFixed(2)}%`})), el("span", {class: over ? "no" : "told"}, `${tell(used)} of ${tell(limit)} ${unit} (${percent(share)})${over ? ", over" : ""}`));
}

// One line for each trial over the settings that were tried and the score; the best one is strong.
function parallelChart(title, text, keys, trials, id, W = full()) {
  const scored = trials.filter(t => known(t.score));
  if (scored.length < 2 || !keys.length) return null;
  const H = 300, T = 40, B = 22, L = 46, R = 60, columns = [...keys, "score"], px = c => L + c * (W - L - R) / (columns.length - 1), best = Math.min(...scored.map(t => t.score)), worst = Math.max(...scored.map(t => t.score));
  const values = keys.map((key, c) => { const all = [...new Set(scored.map(t => t.values[c]))]; return all.every(known) ? all.sort((a, b) => a - b) : all.sort(); });
  const py = (t, c) => T + (H - T - B) * (c === keys.length ? (t.score - best) / (worst - best || 1) : values[c].length > 1 ? 1 - values[c].indexOf(t.values[c]) / (values[c].length - 1) : 0.5);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${scored.length} trials, the best ${num(best, 5)}; the table below has them all`, id});
  for (const t of [...scored].sort((a, b) => b.score - a.score)) {
    const d = columns.map((_, c) => `${c ? "L" : "M"}${px(c).toFixed(1)} ${py(t, c).toFixed(1)}`).join(""), first = t.score === best;
    const path = sv("path", {d, class: "series", stroke: first ? runColour(0) : "var(--muted)", "stroke-opacity": first ? 1 : 0.45, style: `stroke-width:${first ? 3.5 : 1.5}px`, "data-trial": t.name, "data-score": t.score});
    path.append(sv("title", {}, `${t.name}: ${num(t.score, 5)}; ${keys.map((k, c) => `${k} = ${t.values[c]}`).join(", ")}`));
    svg.append(path);
  }
  columns.forEach((name, c) => {
    const anchor = c === 0 ? "start" : c === keys.length ? "end" : "middle", room = (W - L - R) / (columns.length - 1) - 8;
    svg.append(sv("line", {x1: px(c), x2: px(c), y1: T, y2: H - B, class: "axis"}), sv("text", {x: c === 0 ? 0 : c === keys.length ? W : px(c), y: 16, "text-anchor": anchor}, fitted(name, room)));
    const marks = c === keys.length ? [best, worst].map(score => [num(score, 4), py({score}, c)]) : values[c].map((v, k) => [String(v), py({values: {[c]: v}}, c)]);
    for (const [word, y] of marks) svg.append(sv("text", {x: px(c) + (c === keys.length ? 8 : -6), y: y + 4, "text-anchor": c === keys.length ? "start" : "end", class: "halo"}, fitted(word, c ? 56 : 40)));
  });
  return frame(title, note(text), svg);
}
