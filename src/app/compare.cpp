// `fairway compare`: do these runs beat those, over their seeds or over the documents of the text?
#include <fmt/core.h>

#include "analysis/compare_documents.h"
#include "app/command.h"
#include "app/named_inputs.h"
#include "base/error.h"

namespace fairway::app {
namespace {

struct CompareFlags {
  std::vector<std::string> runs, against;
  bool seeds = false, documents = false;
};

void add_sides(nlohmann::ordered_json& result, const SeedScores& runs, const SeedScores& against) {
  result["runs"] = {{"seeds", runs.seeds}, {"nats", runs.nats}, {"bpb", runs.bpb}};
  result["against"] = {{"seeds", against.seeds}, {"nats", against.nats}, {"bpb", against.bpb}};
}

int compare_by_documents(const CommonFlags& common, const CompareFlags& flags, const SeedScores& runs,
                         const SeedScores& against) {
  ThreadPool pool(common.threads > 0 ? common.threads : hardware_threads());
  const DocumentComparison comparison = compare_documents(runs, against, flags.seeds, pool);
  nlohmann::ordered_json result = to_json(comparison);
  std::string text = describe("runs", runs) + describe("against", against) + to_text(comparison);
  if (runs.size() >= 2 && against.size() >= 2) {
    const Comparison over_seeds = compare_scores(runs, against, flags.seeds);
    result["seeds"] = to_json(over_seeds);
    text += "over seeds alone, on this very text:\n" + to_text(over_seeds);
  }
  add_sides(result, runs, against);
  print_result(common, result, text);
  return 0;
}

int run_compare(const CommonFlags& common, const CompareFlags& flags) {
  for (const std::vector<std::string>* side : {&flags.runs, &flags.against})
    for (const std::string& name : *side) require_scores(name);
  const SeedScores runs = read_scores(flags.runs), against = read_scores(flags.against);
  if (flags.documents) return compare_by_documents(common, flags, runs, against);
  const Comparison comparison = compare_scores(runs, against, flags.seeds);
  nlohmann::ordered_json result = to_json(comparison);
  add_sides(result, runs, against);
  print_result(common, result, describe("runs", runs) + describe("against", against) + to_text(comparison));
  return 0;
}

void read_pairing(const std::string& word, CompareFlags& flags) {
  const bool both = word == "both";
  flags.seeds = both || word == "seeds" || word.empty() || word == "true";  // as the parser tells a lone --paired
  flags.documents = both || word == "documents";
  if (!flags.seeds && !flags.documents) throw InputError(fmt::format("--paired {}: expected seeds, documents or both", word));
}

}  // namespace

void add_compare(CLI::App& program) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command = add_command(program, "compare", "compare runs over their seeds or over the documents of the text",
                                  [flags](const CommonFlags& common) { return run_compare(common, *flags); });
  const std::string what = "run folders, a folder of run --seeds, score.json files, or a published system (pr1019, pr1855)";
  command->add_option("RUN", flags->runs, what)->required();
  command->add_option("--against", flags->against, "the baseline: " + what)->required();
  command
      ->add_option_function<std::string>(
          "--paired", [flags](const std::string& word) { read_pairing(word, *flags); },
          "seeds (default): both sides have the same seeds, test the differences; documents: compare each document of the "
          "text; both")
      ->expected(0, 1);
}

}  // namespace fairway::app
