// `fairway compare`: do these runs beat those, over their seeds?
#include <fmt/core.h>

#include <cmath>
#include <filesystem>

#include "analysis/statistics.h"
#include "app/command.h"
#include "base/error.h"
#include "base/file.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

struct CompareFlags {
  std::vector<std::string> runs, against;
  bool paired = false;
};

struct SeedScores {
  std::vector<double> nats, bpb;
};

// A run folder's score.json, or such a file itself.
SeedScores read_scores(const std::vector<std::string>& names) {
  SeedScores scores;
  for (const std::string& name : names) {
    const fs::path path = fs::is_directory(name) ? fs::path(name) / "score.json" : fs::path(name);
    const json record = json::parse(read_file(path), nullptr, false);
    const auto number = [&](const char* key) {
      if (!record.is_object() || !record.contains(key) || !record[key].is_number())
        throw InputError(path.string() + ": has no number \"" + key + "\"; expected what `fairway score --json` prints");
      const auto value = record[key].get<double>();
      if (!std::isfinite(value)) throw InputError(path.string() + ": \"" + key + "\" is not finite");
      return value;
    };
    scores.nats.push_back(number("val_loss"));
    scores.bpb.push_back(number("val_bpb"));
  }
  return scores;
}

std::string describe(const char* what, const SeedScores& s) {
  return fmt::format("{:<9} n={}  {:.5f} ± {:.5f} nats per token  {:.5f} ± {:.5f} bits per byte\n", what, s.nats.size(),
                     mean(s.nats), std::sqrt(sample_variance(s.nats)), mean(s.bpb), std::sqrt(sample_variance(s.bpb)));
}

int run_compare(const CommonFlags& common, const CompareFlags& flags) {
  if (flags.runs.size() < 2 || flags.against.size() < 2)
    throw InputError(fmt::format("compare: {} and {} runs were given; a test needs at least two on each side",
                                 flags.runs.size(), flags.against.size()));
  if (flags.paired && flags.runs.size() != flags.against.size())
    throw InputError(fmt::format("--paired: {} runs against {}; expected as many of each, in the same order of seeds",
                                 flags.runs.size(), flags.against.size()));
  const SeedScores runs = read_scores(flags.runs), against = read_scores(flags.against);
  const TTest test = flags.paired ? paired_test(runs.nats, against.nats) : welch_test(runs.nats, against.nats);
  const TTest margin = welch_margin_test(runs.nats, against.nats, kRecordNats);
  const double delta_nats = mean(runs.nats) - mean(against.nats), delta_bpb = mean(runs.bpb) - mean(against.bpb);
  const bool record = is_record(runs.nats, against.nats);
  const auto finite = [](double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(nullptr); };
  const ordered_json result{{"delta_bpb", delta_bpb},
                            {"delta_nats", delta_nats},
                            {"t", finite(test.t)},
                            {"df", test.df},
                            {"p", test.p},
                            {"record", record},
                            {"paired", flags.paired},
                            {"margin", {{"nats", kRecordNats}, {"t", finite(margin.t)}, {"p", margin.p}}},
                            {"runs", {{"nats", runs.nats}, {"bpb", runs.bpb}}},
                            {"against", {{"nats", against.nats}, {"bpb", against.bpb}}}};
  std::string text = describe("runs", runs) + describe("against", against);
  text += fmt::format("difference {:+.5f} nats per token, {:+.5f} bits per byte\n", delta_nats, delta_bpb);
  text += fmt::format("{}: t = {:.3f}, df = {:.3f}, p = {:.3g}\n", flags.paired ? "paired test" : "Welch's test", test.t,
                      test.df, test.p);
  text += fmt::format("better by more than {} nats: t = {:.3f}, one-sided p = {:.3g}\n", kRecordNats, margin.t, margin.p);
  text += record ? "record: yes\n" : fmt::format("record: no (needs {} nats per token at p < {})\n", kRecordNats, kRecordP);
  print_result(common, result, text);
  return 0;
}

}  // namespace

void add_compare(CLI::App& program) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = add_command(program, "compare", "do these runs beat those? Welch's t over their seeds",
                                  [flags](const CommonFlags& common) { return run_compare(common, *flags); });
  command->add_option("RUN", flags->runs, "run folders or score.json files")->required();
  command->add_option("--against", flags->against, "the baseline's run folders or score.json files")->required();
  command->add_flag("--paired", flags->paired, "run i and baseline i share a seed: test their differences");
}

}  // namespace fairway::app
