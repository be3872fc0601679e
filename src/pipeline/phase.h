// One phase of a chain: a command, the files it reads and leaves, and whether they still are what the ledger says.
#pragma once

#include <filesystem>

#include "pipeline/execute.h"

namespace fairway::pipeline {

struct Phase {
  std::string name;
  Arguments command;
  Arguments flags;                   // added to the command, without effect on the result: threads, quietness
  std::vector<std::string> prompts;  // the command is run once for each, and its texts are gathered; none: run once
  std::string identity;              // what else the result depends on: the recipe's hash, the program's
  std::vector<std::string> inputs;   // files of the folder; other bytes make the phase due again
  std::vector<std::string> outputs;  // must have the recorded bytes
  std::vector<std::string> present;  // must exist; later phases may change them
  std::string save_as;               // the command's result becomes this file, one of `outputs`
  bool shared = false;               // every process of several runs the command
  double expected_seconds = -1;      // below zero: not known
};

// A hash of command, prompts, identity and inputs; two runs of a phase with equal marks would give equal outputs.
std::string mark_of(const Phase& phase, const std::filesystem::path& folder);

// What the ledger keeps of a finished phase.
nlohmann::ordered_json record_of(const Phase& phase, const std::filesystem::path& folder, const std::string& mark,
                                 const Outcome& outcome, double seconds);

bool complete(const Phase& phase, const std::filesystem::path& folder, const nlohmann::ordered_json& record);

}  // namespace fairway::pipeline
