#include "pipeline/seeds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "analysis/compare_runs.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "pipeline/ledger.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLargestSeed = int64_t{1} << 53;

std::string folder_of(const SeedsRequest& request, int64_t seed) {
  return (fs::path(request.chain.out) / fmt::format("seed{}", seed)).string();
}

// Mean and deviation of every number that all seeds have.
void add_statistics(const std::vector<ordered_json>& runs, ordered_json& out) {
  for (const char* key : {"score_bpb", "score_loss", "roundtrip_bpb", "val_bpb", "val_loss", "artifact_bytes", "steps",
                          "step_ms", "train_seconds"}) {
    std::vector<double> values;
    for (const ordered_json& run : runs) {
      if (run.contains(key) && run[key].is_number()) values.push_back(run[key].get<double>());
    }
    if (values.size() != runs.size() || values.empty()) continue;
    out["mean"][key] = mean(values);
    if (values.size() > 1) out["sd"][key] = std::sqrt(sample_variance(values));
  }
}

std::string table(const std::vector<ordered_json>& runs, const ordered_json& result) {
  const auto number = [](const ordered_json& record, const char* key) {
    return record.is_object() && record.contains(key) && record[key].is_number() ? record[key].get<double>() : std::nan("");
  };
  std::string text = fmt::format("{:>12}{:>8}{:>10}{:>13}{:>12}{:>12}{:>14}\n", "seed", "steps", "ms/step", "before quant",
                                 "plain", "score", "artifact");
  const auto row = [&](const std::string& name, const ordered_json& r) {
    text += fmt::format("{:>12}{:>8.0f}{:>10.2f}{:>13.5f}{:>12.5f}{:>12.5f}{:>14.0f}\n", name, number(r, "steps"),
                        number(r, "step_ms"), number(r, "val_bpb"), number(r, "roundtrip_bpb"), number(r, "score_bpb"),
                        number(r, "artifact_bytes"));
  };
  for (const ordered_json& run : runs) row(run.value("seed", ordered_json()).dump(), run);
  row("mean", result.value("mean", ordered_json()));
  if (result.contains("sd")) row("sd", result["sd"]);
  return text;
}

// Seconds by phase of the last finished seed: what the next will take.
std::map<std::string, double> seconds_of(const ordered_json& summary) {
  std::map<std::string, double> out;
  const ordered_json phases = summary.value("phases", ordered_json::object());
  for (const auto& [name, seconds] : phases.items()) out[name] = seconds.get<double>();
  return out;
}

std::string left(const std::map<std::string, double>& expected, size_t runs) {
  double each = 0;
  for (const auto& [name, seconds] : expected) each += seconds;
  return each > 0 ? fmt::format(", about {} left", duration_text(each * static_cast<double>(runs))) : "";
}

}  // namespace

std::vector<int64_t> parse_seeds(const std::string& text) {
  std::vector<int64_t> seeds;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    const bool digits = !word.empty() && word.size() <= 16 && word.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || std::stoll(word) > kLargestSeed)
      throw InputError(
          fmt::format("--seeds {}: \"{}\" is not a seed; expected whole numbers from 0 to 2^53, such as 1,2,3", text, word));
    if (std::find(seeds.begin(), seeds.end(), std::stoll(word)) != seeds.end())
      throw InputError(fmt::format("--seeds {}: {} appears twice", text, word));
    seeds.push_back(std::stoll(word));
    at = comma + 1;
  }
  return seeds;
}

SeedsResult run_seeds(const SeedsRequest& request, const Stages& stages, const Say& say) {
  SeedScores against;
  if (!request.against.empty()) against = read_scores(request.against);  // refused before any work
  Ledger ledger(request.chain.out, "seeds");
  if (ledger.begun() && !request.chain.resume && holds_any_run(request.chain.out))
    throw InputError("--out " + request.chain.out + ": already holds runs; add --resume to continue them");
  ledger.content()["seeds"] = request.seeds;
  ledger.save();
  std::vector<ordered_json> runs;
  std::map<std::string, double> expected;
  int status = 0;
  for (size_t i = 0; i < request.seeds.size(); ++i) {
    const int64_t seed = request.seeds[i];
    say(fmt::format("== seed {} ({} of {}{})", seed, i + 1, request.seeds.size(), left(expected, request.seeds.size() - i)));
    ChainRequest chain = request.chain;
    chain.overrides.push_back(fmt::format("train.seed={}", seed));
    chain.out = folder_of(request, seed);
    chain.resume = request.chain.resume;
    chain.expected = expected;
    const ChainResult one = run_chain(chain, stages, say);
    if (one.status == kInterrupted) return {kInterrupted, {{"path", request.chain.out}, {"interrupted", true}}, ""};
    status = std::max(status, one.status);
    expected = seconds_of(one.summary);
    runs.push_back(one.summary);
    ledger.content()["runs"][fmt::format("seed{}", seed)] = one.summary;
    ledger.save();
  }
  ordered_json result{{"path", request.chain.out}, {"seeds", request.seeds}, {"runs", runs}};
  add_statistics(runs, result);
  std::string text = table(runs, result);
  if (!request.against.empty()) {
    std::vector<std::string> own;
    for (const int64_t seed : request.seeds) own.push_back(folder_of(request, seed));
    const SeedScores scores = read_scores(own);
    text += describe("runs", scores) + describe("against", against);
    if (const std::string why = incomparable(scores, against); !why.empty()) {  // the runs are made: told, not thrown
      result["comparison"] = {{"record", false}, {"refused", why}};
      text += "record: no, the scores cannot be compared: " + why + "\n";
    } else {
      const Comparison comparison = compare_scores(scores, against, false);
      result["comparison"] = to_json(comparison);
      text += to_text(comparison);
    }
  }
  ledger.content()["statistics"] = {{"mean", result.value("mean", ordered_json())}, {"sd", result.value("sd", ordered_json())}};
  ledger.save();
  stages.report(request.chain.out);
  return {status, result, text};
}

}  // namespace fairway::pipeline
