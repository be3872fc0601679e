// submission.json: the fields that published records have (scoring spec §8).
#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/compare_runs.h"
#include "recipe/score_mode.h"
#include "report/machine.h"
#include "submission/write_folder.h"

namespace fairway::submission {
namespace {

using nlohmann::ordered_json;
using Values = std::vector<double>;

Values gathered(std::span<const RunFacts> runs, const std::function<double(const RunFacts&)>& value) {
  Values out;
  for (const RunFacts& run : runs) out.push_back(value(run));
  return out;
}

double deviation(const Values& values) { return values.size() > 1 ? std::sqrt(sample_variance(values)) : 0; }

ordered_json seed_result(const RunFacts& run) {
  ordered_json out{{"val_loss", run.score.at("val_loss")},
                   {"val_bpb", run.score.at("val_bpb")},
                   {"artifact_bytes", run.artifact_bytes},
                   {"artifact_sha256", run.artifact_sha256},
                   {"steps", run.steps},
                   {"step_avg_ms", run.step_ms},
                   {"train_time_s", run.train_seconds},
                   {"eval_time_s", run.score.at("seconds")},
                   {"pre_quant_val_loss", run.before_loss},
                   {"pre_quant_val_bpb", run.before_bpb}};
  if (run.plain.is_object() && run.plain.contains("val_bpb")) out["roundtrip_val_bpb"] = run.plain["val_bpb"];
  return out;
}

ordered_json compliance(std::span<const RunFacts> runs) {
  const std::string name = runs.front().score.value("mode", "");
  const ScoringMode mode = scoring_mode(name).value_or(ScoringMode{});
  return {{"train_under_600s", true},
          {"artifact_under_16mb", true},
          {"eval_under_600s", true},
          {"score_first_ttt", mode.base == ScoreMode::ttt || mode.base == ScoreMode::lora_ttt},
          {"no_slot", !mode.fits_offsets()},
          {"no_ngram_cache", !mode.tilt},
          {"audit_held", true},
          {"three_seeds", true}};
}

void add_comparison(std::span<const RunFacts> runs, const About& about, ordered_json& out) {
  SeedScores own;
  for (const RunFacts& run : runs) {
    own.nats.push_back(run.number("val_loss"));
    own.bpb.push_back(run.number("val_bpb"));
    own.seeds.push_back(run.seed());
  }
  own.on = scored_on(runs.front().score, runs.front().folder / "score.json");
  const Comparison c = compare_scores(own, read_scores(about.against), false);
  const ordered_json told = to_json(c);
  std::string baseline;
  for (const std::string& name : about.against) baseline += (baseline.empty() ? "" : " ") + name;
  out["comparison_baseline"] = baseline;
  out["delta_vs_baseline_nats"] = told["delta_nats"];
  out["delta_vs_baseline_bpb"] = told["delta_bpb"];
  out["t_statistic"] = told["t"];
  out["welch_df"] = told["df"];
  out["p_value"] = told["p"];
  out["record_rule_held"] = told["record"];
}

}  // namespace

ordered_json submission_json(std::span<const RunFacts> runs, const About& about, const Sources& sources) {
  const Values loss = gathered(runs, [](const RunFacts&r) { return r.number("val_loss"); }),
               bpb = gathered(runs, [](const RunFacts&r) { return r.number("val_bpb"); }),
               bytes = gathered(runs, [](const RunFacts&r) { return static_cast<double>(r.artifact_bytes); }),
               steps = gathered(runs, [](const RunFacts&r) { return static_cast<double>(r.steps); }),
               step_ms = gathered(runs, [](const RunFacts&r) { return r.step_ms; });
  uint64_t largest = 0;
  ordered_json seeds = ordered_json::array(), results = ordered_json::object();
  for (const RunFacts& run : runs) {
    largest = std::max(largest, run.artifact_bytes);
    seeds.push_back(run.seed());
    results[std::to_string(run.seed())] = seed_result(run);
  }
  const RunFacts& first = runs.front();
  ordered_json out{{"author", about.author},
                   {"github_id", about.github_id},
                   {"name", about.name},
                   {"blurb", about.blurb},
                   {"date", about.date},
                   {"track", "10min_16mb"},
                   {"val_loss", mean(loss)},
                   {"val_loss_std", deviation(loss)},
                   {"val_bpb", mean(bpb)},
                   {"val_bpb_std", deviation(bpb)},
                   {"bytes_total", largest + sources.bundle.size()},
                   {"bytes_code", sources.bundle.size()},
                   {"artifact_bytes_mean", mean(bytes)},
                   {"artifact_bytes_max", largest},
                   {"train_steps_mean", mean(steps)},
                   {"step_avg_ms_mean", mean(step_ms)},
                   {"seeds", seeds},
                   {"seed_results", results},
                   {"eval_mode", first.score.at("mode")},
                   {"calibration", name_of(first.recipe.quant.calibration)},
                   {"versions", {{"fairway", sources.version}, {"program_sha256", first.receipt["program"]["sha256"]}}},
                   {"compliance", compliance(runs)}};
  out["hardware"] = {{"backend", first.backend}, {"ranks", first.ranks}};
  if (first.machine.is_object()) {
    out["hardware"]["cpu"] = first.machine.value("cpu", "");
    out["hardware"]["threads"] = first.machine.value("threads", 0);
    out["hardware"]["cuda"] = has_device(first.machine);
    if (const std::string device = first.machine.value("device", ""); !device.empty()) out["hardware"]["device"] = device;
  }
  if (!about.against.empty()) add_comparison(runs, about, out);
  return out;
}

}  // namespace fairway::submission
