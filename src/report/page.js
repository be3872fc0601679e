// The page: what is drawn of which part of the data, and the live form that asks for new data.
function tilesOf(r) {
  const s = r.summary, tile = (value, what) => value === undefined || value === null || value === "–" ? null : el("div", {class: "tile"}, el("b", {}, value), el("span", {}, what));
  const legal = r.scores.filter(x => x.legal !== false).map(x => x.val_bpb);
  return [tile(num(s.steps), "steps"), tile(num(s.loss), "last loss, nats"), tile(num(s.val_bpb), "validation bits per byte, before packing"), tile(legal.length ? num(Math.min(...legal)) : null, "best legal score, bits per byte"),
    tile(num(s.artifact_bytes), "artifact bytes"), tile(known(s.tokens_per_second) ? short(s.tokens_per_second) : null, "tokens per second"), tile(known(s.speed_of_light) && s.speed_of_light > 0 ? percent(s.speed_of_light, 0) : null, "of the speed of light"),
    tile(num(s.train_seconds, 1), "seconds of training"), tile(r.audit === null ? null : r.audit.legal ? "legal" : "illegal", "audit")].filter(Boolean);
}

function comparison(runs) {
  const best = r => Math.min(...r.scores.filter(x => x.legal !== false).map(x => x.val_bpb));
  return [frame("Side by side", table(["run", "best legal bpb", "validation bpb", "artifact bytes", "tokens/s", "seconds", "steps"], runs.map(r => [r.name, num(best(r), 5), num(r.summary.val_bpb, 5), num(r.summary.artifact_bytes), known(r.summary.tokens_per_second) ? short(r.summary.tokens_per_second) : "–", num(r.summary.train_seconds, 1), num(r.summary.steps)]))),
    dotChart("Best legal scores", "Bits per byte, lower is better.", runs.map((r, i) => ({name: r.name, value: best(r), kind: i})).filter(d => known(d.value)), "compared")];
}

const modeName = s => (s.mode || "plain") + (s.documents ? ", inside documents" : "");

function scoreSection(runs) {
  const many = runs.length > 1, rungs = runs.flatMap((r, i) => [known(r.summary.val_bpb) ? {name: `${many ? r.name + ": " : ""}before packing`, value: r.summary.val_bpb, kind: i} : null, ...r.scores.map(s => ({name: `${many ? r.name + ": " : ""}${modeName(s)}`, value: s.val_bpb, kind: i, illegal: s.legal === false}))]).filter(Boolean);
  const rows = runs.flatMap(r => r.scores.map(s => [many ? `${r.name}: ${modeName(s)}` : modeName(s), num(s.val_bpb, 5),
    el("span", {class: s.legal === false ? "no" : "yes"}, s.legal === false ? "illegal" : "legal"), num(s.val_loss, 5), num(s.tokens), num(s.seconds, 1)]));
  if (!rows.length) return [];
  const scores = el("section", {id: "scores"}, el("h2", {}, "Scores"), table(["mode", "bits per byte", "", "nats per token", "tokens", "seconds"], rows));
  return [dotChart("Ladder of scores", "Bits per byte, lower is better; what breaks a rule is red.", rungs, "ladder"), scores];
}

function curves(runs) {
  const each = (label, get) => runs.length > 1 ? runs.map(r => ({...get(r), name: `${r.name} ${label}`.trim()})) : runs.map(r => ({...get(r), name: label}));
  const curve = (label, key) => each(label, r => ({x: r.curve.step, y: r.curve[key] || []}));
  const small = [lineChart("Learning-rate scale and momentum", "step", "", curve("lr scale", "lr").concat(curve("momentum", "momentum")), "lr", half()),
    lineChart("Throughput", "step", "tokens/s", curve("tokens/s", "tokens_per_second"), "throughput", half(), 0),
    lineChart("Speed of light", "step", "% of the machine's peak", each("% of the peak", r => ({x: r.curve.step, y: known(r.light_per_token) ? (r.curve.tokens_per_second || []).map(t => known(t) ? 100 * t * r.light_per_token : null) : []})), "light", half(), 0),
    lineChart("Gradient norm", "step", "", curve("gradient norm", "grad_norm"), "gradnorm", half())];
  return [lineChart("Training loss", "step", "nats per token", curve("loss", "loss").concat(each("validation", r => ({x: r.validation.map(v => v.step), y: r.validation.map(v => v.loss)}))), "loss"), beside(small)];
}

const words = value => value && typeof value === "object" ? JSON.stringify(value) : String(value);
function machineOf(r, of) {
  const machine = r.machine && typeof r.machine === "object" ? table([], Object.entries(r.machine).map(([k, v]) => [k.replaceAll("_", " "), words(v)]), {class: "words"}) : null;
  return frame(`Recipe and machine${of}`, machine, el("details", {}, el("summary", {}, "recipe"), el("pre", {}, r.recipe)));
}

function sectionsOf(r, of) {
  const bitsOf = [...new Set(r.tensors.map(t => t.bits))].sort((a, b) => a - b);
  const out = [barChart(`Time per phase${of}`, "seconds", Object.entries(r.phases).map(([name, value]) => ({name, value, label: num(value, 2)})), "phases"),
    treemap(`Bytes of the artifact${of}`, r.ledger, "ledger"),
    barChart(`Quantization error per tensor${of}`, "Weighted error tr(D·H·Dᵀ).", r.tensors.filter(t => t.loss > 0).map(t => ({name: t.name, value: t.loss, kind: bitsOf.indexOf(t.bits), label: `${short(t.loss)} · ${t.bits} bit`})), "tensors", {most: 24, legend: bitsOf.map((b, i) => [`${b} bit`, colours[i % 4]])}),
    ...analysisFigures(r.analysis, of)];
  if (r.audit) out.push(el("section", {id: "audit"}, el("h2", {}, `Audit${of}`), table(["test", "held", "detail"], r.audit.tests.map(t => [t.id, el("span", {class: t.held ? "yes" : "no"}, t.held ? "held" : "failed"), t.detail || ""]), {class: "words"})));
  if (r.samples.length) out.push(el("section", {id: "samples"}, el("h2", {}, `Samples${of}`), ...r.samples.map(s => el("div", {}, el("b", {}, s.prompt), el("pre", {}, s.text)))));
  out.push(machineOf(r, of));
  return out;
}

// An id names one thing on the page: figures of later runs have the run's number after theirs.
function unique(nodes, run) {
  if (run) for (const node of nodes) for (const named of [node, ...node.querySelectorAll("[id]")]) if (named.id) named.id += `-${run}`;
  return nodes;
}

function draw(data) {
  const page = document.getElementById("page"), runs = data.runs;
  const opened = new Set([...page.querySelectorAll("details")].map((d, i) => d.open ? i : -1));
  page.replaceChildren();
  const add = nodes => page.append(...nodes.filter(Boolean));
  add([el("h1", {}, `Fairway: ${runs.map(r => r.name).join(", ")}`)]);
  if (runs.length > 1) add(comparison(runs));
  else add([el("section", {"data-run": runs[0].name}, el("h2", {}, runs[0].name), el("div", {class: "tiles"}, ...tilesOf(runs[0])))]);
  add(curves(runs));
  add(scoreSection(runs));
  runs.forEach((r, i) => add(unique(sectionsOf(r, runs.length > 1 ? ` of ${r.name}` : "").filter(Boolean), i)));
  add([el("p", {class: "muted"}, data.live ? "live: updates while the run goes on" : `made ${data.made}`)]);
  [...page.querySelectorAll("details")].forEach((d, i) => { d.open = opened.has(i); });
  for (const wide of page.querySelectorAll("section")) if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;  // scrolls by keyboard too
  document.title = `Fairway: ${runs.map(r => r.name).join(", ")}`;
}

let data = JSON.parse(document.getElementById("data").textContent);
draw(data);
let drawn = full();
addEventListener("resize", () => { if (full() !== drawn) { drawn = full(); draw(data); } });
if (data.live) {
  let seen = JSON.stringify(data);
  setInterval(async () => {
    try {
      const text = await (await fetch("data.json")).text();
      if (text !== seen) { seen = text; const at = scrollY; data = JSON.parse(text); draw(data); scrollTo(0, at); document.body.dataset.updates = +(document.body.dataset.updates || 0) + 1; }
    } catch { /* the server has gone: the page keeps what it has */ }
  }, 2000);
}
