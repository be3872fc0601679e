// One run: its score and budgets, what it is doing, scores, audit, artifact, samples, machine.
const modeName = s => (s.mode || "plain") + (s.documents ? ", inside documents" : "");
const bestScore = r => {
  const legal = r.scores.filter(s => s.legal !== false && known(s.val_bpb));
  return legal.length ? legal.reduce((a, b) => b.val_bpb < a.val_bpb ? b : a) : null;
};

// The best legal score, else what training has come to.
function headline(r) {
  const best = bestScore(r), s = r.summary;
  const words = best ? `bits per byte, ${modeName(best)}` : known(s.val_bpb) ? "bits per byte on the validation text, before packing" : "nats per token, last training loss";
  const value = best ? best.val_bpb : known(s.val_bpb) ? s.val_bpb : s.loss;
  const held = r.audit ? r.audit.tests.filter(t => t.held).length : 0;
  const audit = r.audit ? verdict(r.audit.legal, `legal: all ${held} properties of the audit hold`, `not legal: ${r.audit.tests.length - held} of ${r.audit.tests.length} properties fail`) : null;
  return el("div", {class: "score"}, el("b", {id: "score", "data-value": value}, fixed(value, 4)), el("span", {}, words), audit);
}

const kChallengeBytes = 16e6, kChallengeSeconds = 600;
function budgets(r) {
  const s = r.summary, best = bestScore(r), seconds = x => num(x, 1);
  return [meter("artifact, of its budget", s.artifact_bytes, s.budget_bytes, "bytes", "meter_bytes"), meter("and code, of the challenge", s.submission_bytes, kChallengeBytes, "bytes", "meter_challenge"),
    meter("training, of its budget", s.train_seconds, s.budget_seconds, "s", "meter_seconds", seconds), meter("training, of its steps", s.steps, s.budget_steps, "steps", "meter_steps"), meter("training, of the challenge", s.train_seconds, kChallengeSeconds, "s", "meter_training", seconds),
    meter("scoring, of the challenge", best ? best.seconds : null, kChallengeSeconds, "s", "meter_scoring", seconds)].filter(Boolean);
}

function tiles(r) {
  const s = r.summary, plain = r.scores.find(x => x.mode === "plain"), tile = (value, what) => value === null || value === "–" ? null : el("div", {class: "tile"}, el("b", {}, value), el("span", {}, what));
  return el("div", {class: "tiles"}, tile(num(s.val_bpb), "bits per byte before packing"), tile(plain && known(s.val_bpb) ? signed(plain.val_bpb - s.val_bpb, 4) : null, "cost of packing, plain mode"), tile(known(s.parameters) ? num(s.parameters) : null, "parameters"), tile(num(s.steps), "steps"),
    tile(num(s.loss), "last loss, nats"), tile(known(s.tokens_per_second) ? short(s.tokens_per_second) : null, "tokens per second"), tile(known(s.speed_of_light) && s.speed_of_light > 0 ? percent(s.speed_of_light, 0) : null, "of the speed of light"));
}

// A run that goes on: its phase, the time left, the size to expect. The page counts the seconds between two answers.
function stateOf(r, live) {
  const state = r.state;
  if (!state || (!live && (state.phase === null || state.phase === "report"))) return null;
  const words = [];
  if (state.phase) words.push(el("b", {id: "phase"}, state.running ? state.phase : `stopped in ${state.phase}`));
  else words.push(el("b", {id: "phase"}, "finished"));
  if (state.phase && known(state.fraction)) words.push(el("span", {id: "fraction"}, percent(state.fraction, 0)));
  if (state.running && known(state.seconds_left)) words.push(el("span", {id: "left", "data-seconds": state.seconds_left}, `about ${time(state.seconds_left)}${state.more_to_come ? ` of ${state.phase === "train" ? "training" : state.phase}` : ""} left`));
  if (state.running && known(state.since)) words.push(el("span", {class: "muted", "data-since": state.since}, ""));
  if (known(state.forecast_bytes) && !known(r.summary.artifact_bytes)) words.push(el("span", {id: "forecast", "data-value": state.forecast_bytes}, `artifact: about ${num(state.forecast_bytes)} bytes expected`));
  const done = new Set(state.done || []), list = (state.plan || []).map(name => el("li", {...(name === state.phase ? {"aria-current": "step"} : {})}, done.has(name) ? `✓ ${name}` : name));
  return el("section", {id: "state"}, el("div", {class: "state"}, ...words), list.length ? el("ol", {class: "steps", "aria-label": "phases"}, ...list) : null);
}

function scoreSection(runs) {
  const many = runs.length > 1, name = (r, what) => many ? `${r.name}: ${what}` : what;
  const rungs = runs.flatMap((r, i) => [known(r.summary.val_bpb) ? {name: name(r, "before packing"), value: r.summary.val_bpb, colour: r.colour || runColour(i)} : null,
    ...r.scores.map(s => ({name: name(r, modeName(s) + (s.legal === false ? " (not legal)" : "")), value: s.val_bpb, colour: r.colour || runColour(i), illegal: s.legal === false}))]).filter(Boolean);
  const rows = runs.flatMap(r => r.scores.map(s => [name(r, modeName(s)), fixed(s.val_bpb, 5), verdict(s.legal !== false, "legal", "not legal"), fixed(s.val_loss, 5), num(s.tokens), num(s.seconds, 1)]));
  if (!rows.length) return null;
  const scores = table(["mode", "bits per byte", "", "nats per token", "tokens", "seconds"], rows, {id: "scores"});
  const ladder = dotChart("Scores", "Bits per byte, lower is better; a ring breaks a rule.", rungs, "ladder", {after: scores});
  return ladder || frame("Scores", scores);
}

function auditSection(r, of) {
  if (!r.audit) return null;
  const rows = r.audit.tests.map(t => [t.property || t.id, verdict(t.held, "holds", "fails"), t.detail || "", t.id]);
  const out = frame(`Audit${of}`, note("What the score's program may not do, tested on a part of the validation text."), table(["property", "", "what was seen", "test"], rows, {class: "words"}));
  out.id = "audit";
  return out;
}

// The same beginning as the text goes on, as the weights write it before and after packing, and as other runs do.
function samplesSection(runs) {
  const byPrompt = new Map();
  for (const r of runs) for (const s of r.samples) {
    if (!byPrompt.has(s.prompt)) byPrompt.set(s.prompt, []);
    byPrompt.get(s.prompt).push({run: r, sample: s});
  }
  if (!byPrompt.size) return null;
  const many = runs.length > 1, text = (heading, words, colour) => el("div", {style: colour ? `border-color:${colour}` : null}, el("h4", {}, heading), el("pre", {}, words));
  const blocks = [...byPrompt].map(([prompt, all]) => {
    const truth = all.map(a => a.sample.truth).find(t => t), parts = truth ? [text("the text itself", truth)] : [];
    for (const {run, sample} of all) {
      if (sample.float) parts.push(text(many ? `${run.name}, weights` : "the weights, before packing", sample.float, run.colour));
      parts.push(text(many ? `${run.name}, artifact` : "the artifact", sample.text, run.colour));
    }
    return el("div", {class: "sample"}, el("blockquote", {}, prompt), el("div", {class: "texts"}, ...parts));
  });
  const cut = [...byPrompt.values()].some(all => all.some(a => a.sample.truth));
  const out = frame("Samples", note(cut ? "Beginnings from the validation text; each continuation is drawn with the same seed and temperature." : ""), ...blocks);
  out.id = "samples";
  return out;
}

const gib = bytes => `${num(bytes / 2 ** 30, 1)} GiB`;
function machineRows(m) {
  const rows = [], add = (name, value) => { if (value !== undefined && value !== null && value !== "") rows.push([name, value]); };
  add("processor", m.cpu && m.isa ? `${m.cpu} (${m.isa})` : m.cpu); add("threads", m.threads);
  if (m.peak_gflops > 0) add("peak", `${num(m.peak_gflops, 0)} GFLOP/s in float32`);
  if (m.memory_bytes > 0) add("memory", gib(m.memory_bytes) + (m.memory_free_bytes > 0 ? `, ${gib(m.memory_free_bytes)} free at the start` : ""));
  if (m.disk_free_bytes > 0) add("disk", `${gib(m.disk_free_bytes)} free at the start`);
  const card = m.cuda && typeof m.cuda === "object" ? m.cuda : {};
  add("card", card.device ? `${card.device}${card.arch ? `, architecture ${card.arch}` : ""}${card.path ? `, kernels ${card.path}` : ", not used"}` : m.device || "none");
  add("program", m.version ? `fairway ${m.version}` : null);
  for (const problem of Array.isArray(m.problems) ? m.problems : []) add("noticed", problem);
  return rows;
}
function machineOf(r, of) {
  const machine = r.machine && typeof r.machine === "object" ? table([], machineRows(r.machine), {class: "words"}) : null;
  const out = frame(`Machine and recipe${of}`, machine, el("details", {}, el("summary", {}, "recipe"), el("pre", {}, r.recipe)));
  out.id = "machine";
  return out;
}

function artifactSections(r, of) {
  const lossy = r.tensors.filter(t => t.loss > 0), widths = [...new Set(lossy.map(t => t.bits))].sort((a, b) => a - b);
  const errors = lossy.map(t => ({name: t.name, value: t.loss, colour: bitColour(t.bits, widths), label: `${short(t.loss)} · ${num(t.bits, 1)} bit`}));
  return [treemap(`Bytes of the artifact${of}`, r.ledger, "ledger"),
    barChart(`Quantization error per tensor${of}`, "Weighted error tr(D·H·Dᵀ); the darker a bar, the more bits the tensor has.", errors, "tensors", {most: 24, legend: widths.map(b => [`${num(b, 1)} bit`, bitColour(b, widths), "border:1px solid var(--muted)"])})];
}

const phasesOf = (r, of) => barChart(`Time per phase${of}`, "seconds", Object.entries(r.phases).map(([name, value]) => ({name, value, label: num(value, 2)})), "phases");

function detailsOf(r, of) {
  return [auditSection(r, of), ...artifactSections(r, of), ...analysisFigures(r.analysis, of), phasesOf(r, of), machineOf(r, of)].filter(Boolean);
}

function runPage(r, live) {
  const top = el("section", {"data-run": r.name, id: "summary"}, headline(r), ...budgets(r), tiles(r));
  return [stateOf(r, live), top, ...curves([r]), scoreSection([r]), auditSection(r, ""), ...artifactSections(r, ""), samplesSection([r]), ...analysisFigures(r.analysis, ""), phasesOf(r, ""), machineOf(r, "")];
}
