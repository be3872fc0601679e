// `fairway compare`: do these runs beat those, over their seeds?
#include "analysis/compare_runs.h"
#include "app/command.h"

namespace fairway::app {
namespace {

struct CompareFlags {
  std::vector<std::string> runs, against;
  bool paired = false;
};

int run_compare(const CommonFlags& common, const CompareFlags& flags) {
  const SeedScores runs = read_scores(flags.runs), against = read_scores(flags.against);
  const Comparison comparison = compare_scores(runs, against, flags.paired);
  nlohmann::ordered_json result = to_json(comparison);
  result["runs"] = {{"seeds", runs.seeds}, {"nats", runs.nats}, {"bpb", runs.bpb}};
  result["against"] = {{"seeds", against.seeds}, {"nats", against.nats}, {"bpb", against.bpb}};
  print_result(common, result, describe("runs", runs) + describe("against", against) + to_text(comparison));
  return 0;
}

}  // namespace

void add_compare(CLI::App& program) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = add_command(program, "compare", "compare runs over their seeds: Welch's t-test and the record rule",
                                  [flags](const CommonFlags& common) { return run_compare(common, *flags); });
  const std::string what = "run folders, a folder of run --seeds, score.json files, or a published system (pr1019, pr1855)";
  command->add_option("RUN", flags->runs, what)->required();
  command->add_option("--against", flags->against, "the baseline: " + what)->required();
  command->add_flag("--paired", flags->paired, "both sides have the same seeds: test the differences seed by seed");
}

}  // namespace fairway::app
