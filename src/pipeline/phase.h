// One phase of a chain: a stage with its request, the files it reads and leaves, and whether they still are what the ledger
// says.
#pragma once

#include <filesystem>

#include "pipeline/stages.h"

namespace fairway::pipeline {

struct Phase {
  std::string name;
  std::function<Outcome()> run;
  nlohmann::ordered_json request;    // its fields that the result depends on; the run's own folder is none of them
  std::string identity;              // what else the result depends on: the program's hash, the tokenizer's
  std::vector<std::string> inputs;   // files of the folder; other bytes make the phase due again
  std::vector<std::string> outputs;  // must have the recorded bytes
  std::vector<std::string> present;  // must exist; later phases may change them
  std::string save_as;               // the stage's result becomes this file, one of `outputs`
  bool keep_result = true;           // in the ledger; else the file alone has it
  bool shared = false;               // every process of several runs the stage
  bool gives_verdict = false;        // its status is a result, not a failure: the chain goes on and ends with it
  std::function<void()> before;      // done each time the chain comes by, also where the phase is complete; may be empty
  double expected_seconds = -1;      // below zero: not known
};

// A hash of request, identity and inputs; two runs of a phase with equal marks would give equal outputs.
std::string mark_of(const Phase& phase, const std::filesystem::path& folder);

// What the ledger keeps of a finished phase.
nlohmann::ordered_json record_of(const Phase& phase, const std::filesystem::path& folder, const std::string& mark,
                                 const Outcome& outcome, double seconds);

bool complete(const Phase& phase, const std::filesystem::path& folder, const nlohmann::ordered_json& record);

}  // namespace fairway::pipeline
