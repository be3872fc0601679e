// Lines over steps, tokens or seconds: smoothed as the reader likes, with the values under the pointer or the arrow keys.
const axes = {step: "step", tokens: "tokens", seconds: "seconds of training"};
const view = {axis: "step", smooth: 0};

// Mean with weights that fall by `keep` a point, corrected for the beginning; what is not known stays so.
function smoothed(values, keep) {
  let sum = 0, weight = 0;
  return values.map(v => {
    if (!known(v)) return null;
    sum = keep * sum + (1 - keep) * v; weight = keep * weight + (1 - keep);
    return sum / weight;
  });
}

function pathOf(xs, ys, px, py) {
  let down = "M";
  return ys.map((y, k) => {
    if (!known(y) || !known(xs[k])) { down = "M"; return ""; }
    const at = `${down}${px(xs[k]).toFixed(1)} ${py(y).toFixed(1)}`;
    down = "L";
    return at;
  }).join("");
}

function nearest(xs, x) {
  let best = -1;
  xs.forEach((v, k) => { if (known(v) && (best < 0 || Math.abs(v - x) < Math.abs(xs[best] - x))) best = k; });
  return best;
}

// What the lines are at the pointer, or at the place that the arrow keys have come to.
function addReading(svg, series, box, xlabel) {
  const {W, H, L, R, T, B, px, py, x0, x1} = box;
  const rule = sv("line", {y1: T, y2: H - B, class: "rule", visibility: "hidden"}), dots = series.map(s => sv("circle", {r: 4, fill: s.colour, visibility: "hidden"}));
  svg.append(rule, ...dots);
  const tip = el("div", {class: "tip", role: "status", hidden: ""}), holder = el("div", {class: "chart"}, svg, tip);
  const longest = series.reduce((a, s) => s.x.length > a.x.length ? s : a), places = [...new Set(longest.x.filter(known))];
  let place = -1;
  const hide = () => { tip.hidden = true; for (const node of [rule, ...dots]) node.setAttribute("visibility", "hidden"); };
  const show = x => {
    const lines = [el("b", {}, `${xlabel} ${num(x, 1)}`)];
    rule.setAttribute("x1", px(x)); rule.setAttribute("x2", px(x)); rule.setAttribute("visibility", "visible");
    series.forEach((s, i) => {
      const k = nearest(s.x, x), reach = s.x.length > 1 ? 1.5 * (x1 - x0) / (s.x.length - 1) : (x1 - x0) * 0.02, near = k >= 0 && known(s.y[k]) && Math.abs(s.x[k] - x) <= reach;
      dots[i].setAttribute("visibility", near ? "visible" : "hidden");
      if (!near) return;
      dots[i].setAttribute("cx", px(s.x[k])); dots[i].setAttribute("cy", py(s.y[k]));
      lines.push(el("span", {"data-series": s.name, "data-y": s.y[k]}, line(s.colour, s.dash), `${s.name} ${num(s.y[k], Math.abs(s.y[k]) >= 1000 ? 0 : 4)}`));
    });
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const scale = holder.clientWidth / W || 1, left = px(x) * scale, wide = tip.offsetWidth;
    tip.style.left = `${Math.max(0, left + 12 + wide > holder.clientWidth ? left - wide - 12 : left + 12)}px`;
    tip.style.top = `${T * scale}px`;
  };
  svg.addEventListener("pointermove", event => {
    const frameBox = svg.getBoundingClientRect(), x = x0 + ((event.clientX - frameBox.left) / frameBox.width * W - L) / (W - L - R) * (x1 - x0);
    place = nearest(places, x);
    if (place >= 0) show(places[place]);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const far = Math.max(1, Math.round(places.length / 20)), move = {ArrowRight: 1, ArrowLeft: -1, PageUp: far, PageDown: -far}[event.key];
    if (event.key === "Escape") return hide();
    if (event.key === "Home") place = 0;
    else if (event.key === "End") place = places.length - 1;
    else if (move) place = Math.min(places.length - 1, Math.max(0, (place < 0 ? (move > 0 ? -1 : places.length) : place) + move));
    else return;
    event.preventDefault();
    show(places[place]);
  });
  return holder;
}

// series: [{name, x, y, colour, dash, dots}]; `from`: where the y axis begins, else at the least value.
function lineChart(title, xlabel, ylabel, series, id, {W = full(), from = null, smooth = 0, after = null} = {}) {
  series = series.filter(s => s.y.some(known)).map((s, i) => ({colour: runColour(0), dash: runDash(i), ...s}));
  if (!series.length) return null;
  const drawn = series.map(s => smooth > 0 && !s.dots ? {...s, y: smoothed(s.y, smooth)} : s);
  const H = W < 500 ? 230 : 320, L = 58, R = 14, T = 10, B = 38, xs = series.flatMap(s => s.x).filter(known), ys = drawn.flatMap(s => s.y).filter(known).sort((a, b) => a - b);
  if (!xs.length) return null;
  const x0 = xs.reduce((a, b) => Math.min(a, b)), x1 = Math.max(xs.reduce((a, b) => Math.max(a, b)), x0 + 1e-9);
  let y0 = from === null ? ys[0] : from, y1 = ys[Math.min(ys.length - 1, Math.ceil(ys.length * 0.995))];
  if (y1 - y0 < 1e-12) { y0 -= 0.5; y1 += 0.5; }
  const px = x => L + (x - x0) / (x1 - x0) * (W - L - R), py = y => T + (1 - (Math.min(y, y1) - y0) / (y1 - y0)) * (H - T - B), last = s => s.y.filter(known).at(-1);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0, "aria-label": `${title}: ${drawn.map(s => `${s.name} ends at ${num(last(s))}`).join(", ")}. Arrow keys tell the values.`, id, class: "read"});
  for (const t of ticks(y0, y1, 5)) svg.append(sv("line", {x1: L, x2: W - R, y1: py(t), y2: py(t), class: "axis"}), sv("text", {x: L - 6, y: py(t) + 4, "text-anchor": "end"}, short(t)));
  for (const t of ticks(x0, x1, W < 500 ? 4 : 8)) svg.append(sv("text", {x: px(t), y: H - B + 16, "text-anchor": px(t) > W - R - 16 ? "end" : "middle"}, short(t)));
  svg.append(sv("text", {x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle"}, xlabel));
  if (ylabel) svg.append(sv("text", {x: 12, y: (H - B + T) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(H - B + T) / 2})`}, ylabel));
  drawn.forEach((s, i) => {
    if (smooth > 0 && !s.dots) svg.append(sv("path", {d: pathOf(s.x, series[i].y, px, py), class: "series faint", stroke: s.colour}));
    if (!s.dots || s.y.length > 1) svg.append(sv("path", {d: pathOf(s.x, s.y, px, py), class: "series", stroke: s.colour, "stroke-dasharray": s.dash || null}));
    svg.lastChild.append(sv("title", {}, s.name));
    svg.append(sv("g", {class: "told", "data-name": s.name, "data-last": last(series[i]), "data-count": s.y.length}));
    if (s.dots || s.y.length <= 30) s.y.forEach((y, k) => { if (known(y) && known(s.x[k])) svg.append(sv("circle", {cx: px(s.x[k]), cy: py(y), r: 3.4, fill: s.colour})); });
  });
  const pick = s => s.x.map((x, k) => k).filter(k => k % Math.ceil(s.x.length / 12) === 0 || k === s.x.length - 1);
  const holder = addReading(svg, drawn, {W, H, L, R, T, B, px, py, x0, x1}, xlabel);
  return frame(title, holder, el("div", {class: "legend"}, ...series.map(s => el("span", {}, s.dots ? swatch(s.colour, "border-radius:50%") : line(s.colour, s.dash), s.name))),
    after, numbers(...series.map(s => table([xlabel, s.name], pick(s).map(k => [num(s.x[k], 1), num(s.y[k], 5)])))));
}

function curveControls(redraw) {
  const axis = el("select", {id: "axis"}, ...Object.entries(axes).map(([key, name]) => el("option", {value: key, ...(view.axis === key ? {selected: ""} : {})}, name)));
  const smooth = el("input", {id: "smooth", type: "range", min: 0, max: 0.98, step: 0.02, value: view.smooth}), told = el("output", {for: "smooth"}, view.smooth > 0 ? fixed(view.smooth, 2) : "off");
  axis.addEventListener("change", () => { view.axis = axis.value; redraw(); });
  smooth.addEventListener("input", () => { view.smooth = Number(smooth.value); told.textContent = view.smooth > 0 ? fixed(view.smooth, 2) : "off"; redraw(); });
  return el("div", {class: "controls", role: "group", "aria-label": "curves"}, el("label", {}, "over ", axis), el("label", {}, "smoothing ", smooth, " ", told));
}

// Runs share each chart: a run keeps its colour, and a second quantity is dashed or dots.
function curveCharts(runs) {
  const many = runs.length > 1, name = (r, label) => many ? `${r.name}: ${label}` : label, xs = r => r.curve[view.axis] || r.curve.step;
  const each = (label, y, more = () => ({})) => runs.map((r, i) => ({name: name(r, label), x: xs(r), y: y(r), colour: r.colour || runColour(i), dash: many ? r.dash ?? runDash(i) : "", ...more(r)}));
  const of = (label, key, more) => each(label, r => r.curve[key] || [], more), second = () => ({dash: "2 3"});
  const xlabel = axes[view.axis], H = half(), smooth = view.smooth;
  const validation = each("validation", r => r.validation.map(v => v.loss), r => ({x: r.validation.map(v => v[view.axis] ?? v.step), dots: true}));
  const light = each("% of the peak", r => known(r.light_per_token) ? (r.curve.tokens_per_second || []).map(t => known(t) ? 100 * t * r.light_per_token : null) : []);
  const small = [lineChart("Learning-rate scale and momentum", xlabel, "", of("lr scale", "lr").concat(of("momentum", "momentum", second)), "lr", {W: H}),
    lineChart("Throughput", xlabel, "tokens/s", of("tokens/s", "tokens_per_second"), "throughput", {W: H, from: 0, smooth}),
    lineChart("Speed of light", xlabel, "% of the machine's peak", light, "light", {W: H, from: 0, smooth}), lineChart("Gradient norm", xlabel, "", of("gradient norm", "grad_norm"), "gradnorm", {W: H, smooth})];
  return [lineChart("Training loss", xlabel, "nats per token", of("loss", "loss").concat(validation), "loss", {smooth}), beside(small)].filter(Boolean);
}

function curves(runs) {
  const charts = el("div", {class: "charts"}), fill = () => charts.replaceChildren(...curveCharts(runs));
  fill();
  return charts.childElementCount ? [el("div", {id: "curves"}, curveControls(fill), charts)] : [];
}
