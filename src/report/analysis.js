// Figures of analysis.json: what `fairway analyze` found (ranks, heads, calibration, lens, sensitivity).
const passName = l => l.pass ? `${l.layer}+${l.pass}` : String(l.layer);
const looked = part => known(part.tokens) ? `${num(part.tokens)} validation tokens in rows of ${num(part.context)}` : "";
// A head's class is a letter; how dark its cell is tells the score.
const headLetters = {induction: "I", previous: "P", positional: "F", other: "·"};
const headNames = {induction: "induction", previous: "previous token", positional: "first position", other: "other"};

function headMap(part, of) {
  if (!part || !part.heads) return null;
  const rows = [], count = 1 + Math.max(...part.heads.map(h => h.head));
  const score = h => ({induction: h.induction, previous: h.previous, positional: h.first, other: Math.max(h.previous, h.first, h.self)})[h.class];
  for (const h of part.heads) {
    if (h.head === 0) rows.push({name: passName(h), cells: []});
    const words = [`previous ${num(h.previous, 3)}`, `first ${num(h.first, 3)}`, `self ${num(h.self, 3)}`, `induction ${num(h.induction, 4)}`, `classical ${num(h.induction_classical, 4)}`, `entropy ${num(h.entropy, 2)} nats`];
    rows[rows.length - 1].cells.push({text: `${headLetters[h.class]} ${score(h).toFixed(2).replace(/^0/, "")}`, share: h.class === "other" ? 0.02 : 0.15 + 0.85 * Math.min(1, h.class === "induction" ? score(h) * 5 : score(h)),
      title: `layer ${passName(h)}, head ${h.head}: ${headNames[h.class]}; ${words.join(", ")}`, marked: h.class_classical === "induction", data: {"data-head": `${passName(h)}.${h.head}`, "data-class": h.class, "data-previous": h.previous, "data-induction": h.induction}});
  }
  const legend = el("div", {class: "legend"}, ...Object.keys(headLetters).map(c => el("span", {}, el("b", {}, headLetters[c]), ` ${headNames[c]}: ${part.classes.published[c]}`)),
    el("span", {}, swatch("transparent", "border:2px solid var(--bad)"), `induction by the classical definition: ${part.classes.classical.induction}`));
  const all = table(["head", "class", "previous", "first", "self", "induction", "classical", "entropy"], part.heads.map(h => [`${passName(h)}.${h.head}`, headNames[h.class], num(h.previous, 3), num(h.first, 3), num(h.self, 3), num(h.induction, 4), num(h.induction_classical, 4), num(h.entropy, 2)]));
  return gridChart(`Attention heads${of}`, `What each head looks at, with the score that decides its class; ${looked(part)}.`, [...Array(count).keys()].map(String), rows, "heads", {corner: "layer", legend, after: numbers(all)});
}

// Bars of what came true over what was promised; the dashed line is a model that is as right as it is sure.
function reliability(part, of, W = half()) {
  if (!part || !part.bins) return null;
  const H = 260, L = 46, R = 10, T = 8, B = 38, most = Math.max(...part.bins.map(b => b.count), 1);
  const px = p => L + p * (W - L - R), py = p => T + (1 - p) * (H - T - B);
  const svg = sv("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Calibration: expected error ${percent(part.expected_error, 2)}, accuracy ${percent(part.accuracy, 1)}`, id: "calibration", "data-error": part.expected_error});
  for (const t of [0, 0.25, 0.5, 0.75, 1]) svg.append(sv("line", {x1: L, x2: W - R, y1: py(t), y2: py(t), class: "axis"}), sv("text", {x: L - 6, y: py(t) + 4, "text-anchor": "end"}, percent(t, 0).replace(" ", "")), sv("text", {x: px(t), y: H - B + 16, "text-anchor": t === 1 ? "end" : "middle"}, num(t, 2)));
  for (const b of part.bins) {
    const wide = px(b.high) - px(b.low) - 2;
    svg.append(sv("rect", {x: px(b.low) + 1, y: py(0.25 * b.count / most), width: wide, height: py(0) - py(0.25 * b.count / most), fill: "var(--quiet)"}));
    if (!b.count) continue;
    const bar = sv("rect", {x: px(b.low) + 1, y: py(b.accuracy), width: wide, height: py(0) - py(b.accuracy), fill: "var(--run0)", "fill-opacity": 0.55, "data-accuracy": b.accuracy, "data-count": b.count});
    bar.append(sv("title", {}, `sure ${percent(b.confidence)}, right ${percent(b.accuracy)}, ${num(b.count)} tokens`));
    svg.append(bar);
  }
  svg.append(sv("line", {x1: px(0), y1: py(0), x2: px(1), y2: py(1), class: "ideal"}));
  for (const b of part.bins) if (b.count) svg.append(sv("circle", {cx: px(b.confidence), cy: py(b.accuracy), r: 3.2, fill: "var(--run0)"}));
  svg.append(sv("text", {x: (L + W - R) / 2, y: H - 4, "text-anchor": "middle"}, "probability of the likeliest token"));
  return frame(`Calibration${of}`, el("p", {class: "note"}, `Expected error ${percent(part.expected_error, 2)}; right ${percent(part.accuracy)} of the time, sure ${percent(part.confidence)}; entropy ${num(part.entropy, 3)} nats. ${looked(part)}.`), svg,
    legendOf([["how often it was right", "var(--run0)"], ["share of the tokens", "var(--quiet)"], ["as right as sure", "var(--muted)"]]),
    numbers(table(["probability", "tokens", "sure", "right"], part.bins.filter(b => b.count).map(b => [`${b.low}–${b.high}`, num(b.count), percent(b.confidence), percent(b.accuracy)]))));
}

function lensCharts(part, of) {
  if (!part || !part.layers) return [];
  const x = part.layers.map((_, i) => i);
  return [lineChart(`Logit lens${of}: loss`, "after layer", "nats per token", [{name: "nats per token", x, y: part.layers.map(l => l.loss)}], "lens", {W: half()}),
    lineChart(`Logit lens${of}: accuracy`, "after layer", "%", [{name: "likeliest token is right, %", x, y: part.layers.map(l => 100 * l.accuracy)}], "lens_accuracy", {W: half()})];
}

function spectraBars(part, of) {
  if (!part || !part.roles) return null;
  return barChart(`Rank utilisation${of}`, "Share of the singular values that hold 99 % of the squares, mean over the layers; beside it the stable rank.",
    part.roles.map(r => ({name: r.role, value: r.utilization, label: `${percent(r.utilization)} · ${num(r.stable_rank, 1)}`})), "svd", {W: half()});
}

function rateCurves(part, of) {
  if (!part || !part.tensors) return [];
  const series = [["bits a weight", "bits"], ["least for the same error", "bound"]].map(([name, key]) => ({name, x: part.all.map(p => p.bits), y: part.all.map(p => p[key])}));
  return [lineChart(`Bits and their bound${of}`, "bits a weight, one step a tensor", "bits a weight", series, "rates", {W: half()}),
    barChart(`What steps by column can save${of}`, `Bits a weight, ½·log2 of mean over geometric mean of ℓ²; ${num(part.column_gain, 3)} over all weights.`,
      [...part.tensors].sort((a, b) => b.column_gain - a.column_gain).slice(0, 12).map(t => ({name: t.name, value: t.column_gain, label: num(t.column_gain, 3)})), "column_gain", {W: half()})];
}

function sensitivityMaps(part, of) {
  if (!part || !part.matrices) return [];
  const roles = [...new Set(part.matrices.map(m => m.role))], layers = [...new Set(part.matrices.map(m => m.layer))];
  return part.bits.map((bits, w) => {
    const key = `int${bits}`, most = Math.max(...part.matrices.map(m => m.change[key].bpb), 1e-12);
    const rows = layers.map(layer => ({name: String(layer), cells: roles.map(role => {
      const m = part.matrices.find(x => x.role === role && x.layer === layer), bpb = m.change[key].bpb;
      return {text: num(1e6 * bpb, Math.abs(bpb) < 1e-5 ? 1 : 0), share: Math.max(0.03, Math.sqrt(Math.max(0, bpb) / most)), title: `${m.name}: ${bpb.toExponential(3)} bits per byte`, data: {"data-name": m.name, "data-bits": bits, "data-bpb": bpb}};
    })}));
    return gridChart(`Sensitivity to int${bits}${of}`, `Change of the plain score in millionths of a bit per byte when one matrix is rounded; all together ${num(1e6 * part.all[key].bpb, 0)}. ${looked(part)}.`, roles, rows, `sensitivity${w}`, {W: half(), corner: "layer",
      after: numbers(table(["matrix", "bpb · 10⁶", "± "], part.matrices.map(m => [m.name, num(1e6 * m.change[key].bpb, 2), num(1e6 * m.change[key].nats_error * (m.change[key].nats ? m.change[key].bpb / m.change[key].nats : 0), 2)])))});
  });
}

function analysisFigures(analysis, of) {
  if (!analysis) return [];
  return [headMap(analysis.heads, of), beside(lensCharts(analysis.lens, of)), beside([reliability(analysis.calibration, of), spectraBars(analysis.svd, of)]), beside(sensitivityMaps(analysis.sensitivity, of)), beside(rateCurves(analysis.quant, of))].filter(Boolean);
}
