#include "app/report_comparison.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>

#include "analysis/compare_documents.h"
#include "base/error.h"
#include "report/groups.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

SeedScores scores_of_side(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& run : side_of(folder).runs) names.push_back(run.string());
  return read_scores(names);
}

ordered_json over_documents(const SeedScores& runs, const SeedScores& against, ThreadPool& pool) {
  const DocumentComparison found = compare_documents(runs, against, false, pool);
  const Statement& told = found.test.recipes ? *found.test.recipes : found.test.models;
  return {{"by", "documents"},
          {"delta_bpb", told.difference.value},
          {"low", told.interval.low},
          {"high", told.interval.high},
          {"p", told.p},
          {"of", fmt::format("{} documents{}", found.documents, found.documents < kFewDocuments ? ", few: rough" : "")}};
}

ordered_json over_seeds(const SeedScores& runs, const SeedScores& against) {
  const Comparison found = compare_scores(runs, against, false);
  return {{"by", "seeds"},
          {"delta_bpb", found.delta_bpb},
          {"low", found.interval.low},
          {"high", found.interval.high},
          {"p", found.test.p},
          {"of", fmt::format("{} and {} seeds", runs.size(), against.size())}};
}

void add_seeds_interval(ordered_json& seeds) {
  std::vector<double> scores;
  for (const ordered_json& row : seeds["rows"])
    if (row.contains("score_bpb")) scores.push_back(row["score_bpb"].get<double>());
  if (scores.size() < 2) return;
  const double n = static_cast<double>(scores.size());
  const Interval interval = interval_of({mean(scores), std::sqrt(sample_variance(scores) / n), n - 1});
  seeds["low"] = interval.low;
  seeds["high"] = interval.high;
}

}  // namespace

void add_comparison(const std::vector<fs::path>& folders, ThreadPool& pool, ordered_json& data) {
  if (data["page"] == "seeds") add_seeds_interval(data["seeds"]);
  if (data["page"] != "compare") return;
  ordered_json deltas = ordered_json::array();
  const auto add = [&](size_t side, const char* by, const std::function<ordered_json()>& work) {
    const ordered_json name = data["sides"][side]["name"];
    try {
      ordered_json delta = work();
      delta["name"] = name;
      deltas.push_back(std::move(delta));
    } catch (const InputError& error) {
      deltas.push_back({{"name", name}, {"by", by}, {"refused", error.what()}});
    }
  };
  for (size_t side = 1; side < folders.size(); ++side) {
    add(side, "documents", [&] { return over_documents(scores_of_side(folders[side]), scores_of_side(folders[0]), pool); });
    if (data["sides"][side]["runs"].size() > 1 && data["sides"][0]["runs"].size() > 1)
      add(side, "seeds", [&] { return over_seeds(scores_of_side(folders[side]), scores_of_side(folders[0])); });
  }
  data["comparison"] = {{"baseline", data["sides"][0]["name"]}, {"deltas", deltas}};
}

}  // namespace fairway::app
