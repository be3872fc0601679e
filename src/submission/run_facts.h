// What a submission says of one run, gathered from the run's folder.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/score_records.h"
#include "recipe/recipe.h"

namespace fairway::submission {

struct RunFacts {
  std::filesystem::path folder;
  Recipe recipe;
  int64_t steps = 0;
  double train_seconds = 0, step_ms = 0;
  double counted_calibration = 0;                               // seconds that belong to training
  double before_loss = 0, before_bpb = 0;                       // of the averaged weights, before quantizing
  nlohmann::ordered_json pack, plain, score, receipt, machine;  // plain and machine may be null
  ScoreRecords records;                                         // what the score must be the sum of
  uint64_t artifact_bytes = 0;
  std::string artifact_sha256;
  std::string log;  // train.log with its closing lines

  std::string forked_from;  // the weights it began with, where they are not its seed's

  // How training was started: its backend and how many ranks; empty and 0 where machine.json does not tell.
  std::string backend;
  int64_t ranks = 0;

  int64_t seed() const { return recipe.train.seed; }
  double number(const char* key) const { return score.at(key).get<double>(); }  // of the score
};

// InputError names a file that is missing, cannot be read or lacks a field.
RunFacts read_run_facts(const std::filesystem::path& folder);

}  // namespace fairway::submission
