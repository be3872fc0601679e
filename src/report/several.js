// Several runs: side by side, the seeds of one recipe, the trials of a sweep, the runs of a folder.
const runName = r => el("span", {}, line(r.colour, r.dash), r.name);

function sideTable(runs, sides) {
  const base = sides ? sides[0] : {name: runs[0].name, runs: [0]}, scores = base.runs.map(i => bestScore(runs[i])), first = scores.every(Boolean) ? scores.reduce((sum, s) => sum + s.val_bpb, 0) / scores.length : null;
  const rows = runs.map((r, i) => {
    const best = bestScore(r), s = r.summary;
    return [runName(r), fixed(best && best.val_bpb, 5), best && known(first) && !base.runs.includes(i) ? signed(best.val_bpb - first) : "", fixed(s.val_bpb, 5), num(s.artifact_bytes), known(s.tokens_per_second) ? short(s.tokens_per_second) : "–", num(s.train_seconds, 1), num(s.steps)];
  });
  return frame("Side by side", note(`Differences are to ${base.runs.length > 1 ? "the mean of " : ""}${base.name}; below zero is better.`), table(["run", "best legal bpb", "difference", "before packing", "artifact bytes", "tokens/s", "seconds", "steps"], rows, {id: "side", sort: true}));
}

// Differences of scores with their intervals, as `fairway compare` computes them.
function deltaSection(comparison, colours) {
  if (!comparison || !comparison.deltas || !comparison.deltas.length) return null;
  const told = comparison.deltas.filter(d => known(d.delta_bpb)), refused = comparison.deltas.filter(d => d.refused);
  const by = d => d.by === "seeds" ? "over seeds" : "over documents", dots = told.map(d => ({name: `${d.name}, ${by(d)}`, value: d.delta_bpb, low: d.low, high: d.high, colour: colours[d.name]}));
  const rows = told.map(d => [d.name, by(d), signed(d.delta_bpb), known(d.low) ? `${signed(d.low)} to ${signed(d.high)}` : "–", known(d.p) ? (d.p < 1e-4 ? "< 0.0001" : num(d.p, 4)) : "–", d.of || ""]);
  const after = [rows.length ? table(["run", "compared", "difference", "95 % interval", "p", "of"], rows) : null, ...refused.map(d => el("p", {class: "note"}, `${d.name} and ${comparison.baseline}, ${by(d)}: ${d.refused}`))];
  const chart = dotChart(`Difference to ${comparison.baseline}`, "Bits per byte with 95 % intervals; left of the dashed line is better. Over documents: would other text of this kind say the same? Over seeds: would other seeds?", dots, "deltas", {zero: true, digits: 5, least: 1, after: el("div", {}, ...after)});
  return chart || frame(`Difference to ${comparison.baseline}`, ...after);
}

function recipeDifferences(differences, names) {
  if (!differences) return null;
  if (!differences.length) return frame("Recipes", note("The recipes have the same keys."));
  const word = v => typeof v === "string" ? v : JSON.stringify(v);
  const out = frame("Differences of the recipes", table(["key", ...names], differences.map(d => [d.key, ...d.values.map(word)]), {class: "words"}));
  out.id = "differences";
  return out;
}

function withColours(runs, sides) {
  runs.forEach((r, i) => {
    const side = sides ? sides.findIndex(s => s.runs.includes(i)) : i;
    r.colour = runColour(side); r.dash = runDash(sides ? sides[side].runs.indexOf(i) : i);
  });
}

function comparePage(data) {
  withColours(data.runs, data.sides && data.sides.some(s => s.runs.length > 1) ? data.sides : null);
  const dots = data.runs.map(r => ({name: r.name, value: bestScore(r) ? bestScore(r).val_bpb : null, colour: r.colour}));
  const colours = Object.fromEntries((data.sides || []).map(s => [s.name, data.runs[s.runs[0]].colour]));
  const names = data.sides ? data.sides.map(s => s.name) : data.runs.map(r => r.name);
  return [sideTable(data.runs, data.sides), dotChart("Best legal scores", "Bits per byte, lower is better.", dots, "compared"), deltaSection(data.comparison, colours), recipeDifferences(data.differences, names), ...curves(data.runs), scoreSection(data.runs), samplesSection(data.runs),
    ...data.runs.map((r, i) => el("details", {class: "run"}, el("summary", {}, `More of ${r.name}`), ...unique(detailsOf(r, ` of ${r.name}`), i + 1)))];
}

function seedsPage(data) {
  withColours(data.runs);
  const s = data.seeds, mean = s.mean || {}, sd = s.sd || {}, shown = ["score_bpb", "roundtrip_bpb", "val_bpb", "artifact_bytes", "steps", "step_ms", "train_seconds"].filter(k => known(mean[k]) || s.rows.some(r => known(r[k])));
  const heads = {score_bpb: "score, bpb", roundtrip_bpb: "plain, bpb", val_bpb: "before packing", artifact_bytes: "artifact bytes", steps: "steps", step_ms: "ms per step", train_seconds: "seconds"}, digits = k => /bpb/.test(k) ? 5 : k === "step_ms" ? 2 : k === "train_seconds" ? 1 : 0, middle = k => k === "steps" ? 1 : digits(k);
  const body = s.rows.map(r => [`seed ${r.seed}`, ...shown.map(k => valued(r[k], fixed(r[k], digits(k))))]);
  const foot = [["mean", mean], ["standard deviation", sd]].filter(([, of]) => Object.keys(of).length).map(([name, of]) => [el("b", {}, name), ...shown.map(k => fixed(of[k], middle(k)))]);
  const top = known(mean.score_bpb) ? el("div", {class: "score"}, el("b", {id: "score", "data-value": mean.score_bpb}, fixed(mean.score_bpb, 4)), el("span", {}, `bits per byte, mean of ${s.rows.length} seeds${known(s.low) ? `, 95 % interval ${fixed(s.low, 4)} to ${fixed(s.high, 4)}` : ""}${known(sd.score_bpb) ? `, standard deviation ${fixed(sd.score_bpb, 5)}` : ""}`)) : note("Not every seed has its score yet.");
  const dots = s.rows.map(r => ({name: `seed ${r.seed}`, value: r.score_bpb})).concat(known(s.low) ? [{name: "mean, 95 % interval", value: mean.score_bpb, low: s.low, high: s.high}] : []);
  return [el("section", {id: "summary"}, top, table(["seed", ...shown.map(k => heads[k])], body, {id: "seeds", sort: true, foot})), dotChart("Scores of the seeds", "Bits per byte, lower is better.", dots, "seed_scores", {mark: known(mean.score_bpb) ? mean.score_bpb : null, digits: 5}),
    ...curves(data.runs), samplesSection(data.runs), ...data.runs.map((r, i) => el("details", {class: "run"}, el("summary", {}, `More of ${r.name}`), ...unique(detailsOf(r, ` of ${r.name}`), i + 1)))];
}

function sweepPage(data) {
  withColours(data.runs);
  const s = data.sweep, keys = s.keys, rows = [...s.trials].sort((a, b) => b.rung - a.rung || (known(a.score) ? a.score : Infinity) - (known(b.score) ? b.score : Infinity));
  const top = s.best ? el("section", {id: "summary"}, el("div", {class: "score"}, el("b", {id: "score", "data-value": s.best.score}, fixed(s.best.score, 4)), el("span", {}, `${s.best.metric}, trial ${s.best.trial}: ${s.best.set.join(", ")}`))) : el("section", {id: "summary"}, note("The sweep goes on: no trial has won yet."));
  const last = Math.max(...s.trials.map(t => t.rung)), lastRung = s.trials.filter(t => t.rung === last), most = s.trials.filter(t => t.rung === 1).length ? 1 : last;
  const plotted = s.trials.filter(t => t.rung === most);
  const list = table(["trial", "rung", "budget", ...keys, "score", "steps", "seconds"], rows.map(t => [t.failed ? el("span", {class: "no long"}, `${t.name}: ${t.failed}`) : t.name, valued(t.rung, t.rung), valued(t.share, percent(t.share, 0)), ...t.values.map(v => valued(v, String(v))), valued(t.score, fixed(t.score, 5)), num(t.steps), num(t.seconds, 1)]), {id: "trials", sort: true});
  return [top, parallelChart(`Settings and scores${last > 1 ? `, rung ${most}` : ""}`, `One line for each trial; the strong one is the best of ${plotted.length}. Scores are ${s.metric || "the loss"}: lower is better.`, keys, plotted, "parallel"),
    frame("Trials, the best first", note(last > 1 ? `Rung ${last} has the whole budget; lower rungs chose who goes on. ${lastRung.length} of ${plotted.length} came there.` : ""), list), ...curves(data.runs)];
}

// A folder of runs while it fills: what each is doing, a link to its page, and boxes to choose some for a comparison.
function folderPage(data) {
  const rows = data.folder.runs, chosen = new Set();
  if (!rows.length) return [el("section", {id: "waiting"}, el("p", {}, `No run lies in ${data.title} yet. This page shows the first one as soon as it begins.`))];
  const address = names => "?" + names.map(n => `run=${encodeURIComponent(n)}`).join("&"), go = el("a", {id: "compare", hidden: ""}, "compare the chosen runs");
  const box = name => {
    const input = el("input", {type: "checkbox", "aria-label": `choose ${name}`, id: `choose-${name}`});
    input.addEventListener("change", () => { if (input.checked) chosen.add(name); else chosen.delete(name); go.hidden = chosen.size < 2; go.setAttribute("href", address([...chosen])); });
    return input;
  };
  const cells = r => [el("span", {"data-sort": r.name}, box(r.name), " ", el("a", {href: address([r.name])}, r.name)), r.kind === "run" ? r.state : r.kind, num(r.steps), fixed(r.loss, 4), valued(r.val_bpb, fixed(r.val_bpb, 4)), valued(r.score_bpb, fixed(r.score_bpb, 4)), num(r.artifact_bytes), time(r.train_seconds)];
  return [frame(`${rows.length === 1 ? "One run" : `${rows.length} runs`}`, table(["run", "state", "steps", "last loss", "before packing, bpb", "score, bpb", "artifact bytes", "trained"], rows.map(cells), {id: "runs", sort: true}), el("p", {}, go), data.folder.left_out ? note(`${data.folder.left_out} more are not shown.`) : null)];
}
