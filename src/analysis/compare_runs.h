// Sets of scores, one for each seed: read from runs or from what was published, described, and tested against each other.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/published.h"
#include "analysis/statistics.h"
#include "base/identity.h"

namespace fairway {

// What a score is the score of; scores compare where these agree.
struct ScoredOn {
  std::string text, tokenizer;  // identities: of the validation text, of the tokenizer that cut it
  int64_t tokens = 0, bytes = 0;
  bool whole = false;   // all of the text was scored
  bool packed = false;  // an artifact, not weights as they were trained
  bool legal = true;
  std::string mode;
  int64_t context = 0, stride = 0;
  bool documents = false;  // inside documents
};
Identities identities_of(const ScoredOn& on, const std::filesystem::path& by = {});
// From what `fairway score --json` prints; InputError names the file and the field it lacks.
ScoredOn scored_on(const nlohmann::json& score, const std::filesystem::path& path);

struct SeedScores {
  std::vector<double> nats, bpb;               // as many as seeds; one of them may be empty (published values)
  std::vector<int64_t> seeds;                  // empty when not every seed is known
  std::vector<std::filesystem::path> files;    // their score.json; empty for published values
  ScoredOn on{};                               // of every seed alike
  const PublishedScores* published = nullptr;  // then `on` says nothing: it was scored on the official text
  size_t size() const { return bpb.empty() ? nats.size() : bpb.size(); }
};

// Why the two do not compare: a sentence that names what differs; empty when they do. Other modes compare, since the way of
// scoring is part of a system; other texts, parts of a text, or weights beside artifacts do not. Other tokenizers compare on
// the whole text.
std::string incomparable(const SeedScores& runs, const SeedScores& against);

// Each name is a run folder, a folder of `fairway run --seeds`, a score.json, or a published system ("pr1855").
// InputError names the file and what it lacks, or two files of a side whose scores are not of the same thing.
SeedScores read_scores(const std::vector<std::string>& names);

// Puts `against` into the order of the seeds of `runs`. InputError when their numbers or their seeds differ.
void match_seeds(const SeedScores& runs, SeedScores& against);

struct Comparison {
  double delta_bpb = 0, delta_nats = 0;  // NaN where it cannot be told
  Interval interval;                     // of delta_bpb; NaN where it cannot be told
  TTest test, margin;                    // margin: one-sided, better by more than 0.005 nats per token; both paired or not
  bool through_bytes = false;            // tested in bits per byte, because tokenizers differ or a side has no nats
  bool paired = false, record = false;
  double margin_bpb = 0;  // 0.005 nats per token of these runs, in bits per byte; 0 when not known
  std::string barred;     // why there can be no record, whatever the numbers say; empty: they decide
};
// Needs two scores on each side, for a paired test the same number; known seeds are paired with their equals, and refused when
// they differ. InputError when they are incomparable().
Comparison compare_scores(const SeedScores& runs, SeedScores against, bool paired);

nlohmann::ordered_json to_json(const Comparison& comparison);
std::string to_text(const Comparison& comparison);
std::string describe(const std::string& what, const SeedScores& scores);

}  // namespace fairway
