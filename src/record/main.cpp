// fairway-record: what a record needs and nothing else. Trains a recipe, packs the averaged weights and scores the artifact
// with the same stages as `fairway run`, hence to the same bytes and the same score.
#include <fmt/core.h>

#include <charconv>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"
#include "stages/guarded_main.h"
#include "stages/pack_stage.h"
#include "stages/ranks.h"
#include "stages/scoring.h"
#include "stages/train_stage.h"

namespace fairway {
namespace {

constexpr const char* kUsage =
    "usage: fairway-record RECIPE.toml --data SHARDS --out FOLDER --budget BYTES [--seed N] [--set key=value]\n"
    "       [--as-published] [--backend NAME] [--threads N]";

struct Asked {
  std::string recipe, data, out;
  std::vector<std::string> overrides;
  PackRequest packing;
  Compute compute{.backend = default_backend()};
};

template <class T>
T whole_number(const std::string& flag, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < T{0})
    throw InputError(flag + " " + text + ": expected a whole number");
  return value;
}

Asked parse(std::span<char*> words) {
  Asked asked;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (i + 1 == words.size()) throw InputError(word + ": needs a value");
      return std::string(words[++i]);
    };
    if (word == "--data")
      asked.data = value();
    else if (word == "--out")
      asked.out = value();
    else if (word == "--seed")
      asked.overrides.push_back(fmt::format("train.seed={}", whole_number<int64_t>(word, value())));
    else if (word == "--set")
      asked.overrides.push_back(value());
    else if (word == "--budget")
      asked.packing.budget = whole_number<uint64_t>(word, value());
    else if (word == "--as-published")
      asked.packing.as_published = true;
    else if (word == "--backend")
      asked.compute.backend = value();
    else if (word == "--threads")
      asked.compute.threads = whole_number<int>(word, value());
    else if (word.starts_with("--") || !asked.recipe.empty())
      throw InputError(word + ": not known here\n" + kUsage);
    else
      asked.recipe = word;
  }
  if (asked.recipe.empty() || asked.data.empty() || asked.out.empty()) throw InputError(kUsage);
  if (asked.packing.budget == 0)
    throw InputError("--budget: expected the bytes of the artifact; these sources do not know how many of the limit they take");
  return asked;
}

int make_record(std::span<char*> words) {
  Asked asked = parse(words);
  Communicator& comm = meet_ranks(asked.compute);
  const Recipe recipe = load_recipe(asked.recipe, asked.overrides);
  const TrainSummary trained = train_stage(
      {.recipe = recipe, .data = asked.data, .out = asked.out, .resume = true, .started = seconds_now()}, asked.compute, comm);
  if (trained.interrupted) return 130;
  asked.packing.from = asked.out;
  asked.packing.data = asked.data;
  const std::string artifact = pack_stage(asked.packing, 0, asked.compute, comm).path;
  const auto scoring = open_scoring(score_request(recipe, artifact, asked.data));
  Machine machine(asked.compute);
  const ScoredRun run = score_stream(*scoring, scoring->settings, scoring->stream, machine, asked.compute.quiet, comm);
  if (comm.root())
    print_out(fmt::format("{{\"steps\":{},\"train_seconds\":{},\"artifact_bytes\":{},\"val_loss\":{},\"val_bpb\":{}}}\n",
                          trained.steps, trained.train_seconds, scoring->source.file.bytes, run.score.loss(),
                          run.score.bits_per_byte()));
  return 0;
}

}  // namespace
}  // namespace fairway

int main(int argc, char** argv) {
  return fairway::guarded_main("fairway-record",
                               [&] { return fairway::make_record(std::span(argv, static_cast<size_t>(argc)).subspan(1)); });
}
