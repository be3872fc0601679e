// A recipe to a report, in one folder: train (with its averages), pack (which quantizes), score, audit, samples, report. The
// ledger run.json tells what is done; a phase whose files are complete is not done again.
#pragma once

#include <map>

#include "pipeline/stages.h"

namespace fairway::pipeline {

struct ChainRequest {
  std::string recipe;                  // a built-in name or a file
  std::vector<std::string> overrides;  // key=value
  std::string data, out;
  std::string tokenizer_file;                // of the data; empty: tokenizer.model beside the shards
  std::string from;                          // a run or file whose weights training begins with; empty: the seed's
  uint64_t memory = 0;                       // most bytes that training may take; 0: what is free
  PackRequest packing;                       // budget, codec, as published
  std::vector<std::string> prompts{"The "};  // of the samples
  std::string program;                       // SHA-256 of this program: what another one packed or scored is made again
  std::string tokenizer;                     // identity of the data's: with another one every phase is due again …
  std::string held_out;                      // … and with other validation shards those that score
  bool resume = false;
  bool allow_shared = false;   // documents of the validation text in the training text
  bool training_only = false;  // of a sweep
  // Of several processes: only the first keeps the ledger, the others join the phases that all share. `agree` gives every
  // process the first one's answer.
  bool helper_rank = false;
  std::function<bool(bool)> agree = [](bool mine) { return mine; };
  std::map<std::string, double> expected{};  // seconds of phases as far as known, for the time left
};

struct ChainResult {
  int status = 0;                  // 1 when the audit does not hold, 130 when interrupted
  nlohmann::ordered_json summary;  // the fields of `fairway run --json`
};
// InputError when the folder holds a run and `resume` is not set; what a failure before the first step left is none.
ChainResult run_chain(const ChainRequest& request, const Stages& stages, const Say& say);

// The summary of what the folder's ledger holds; seconds of each phase under "phases".
nlohmann::ordered_json chain_summary(const nlohmann::ordered_json& ledger, const Recipe& recipe);
std::string summary_text(const nlohmann::ordered_json& summary);

}  // namespace fairway::pipeline
