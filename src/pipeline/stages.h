// The stages of a run as the pipeline asks for them: each takes values, leaves files and returns its result. The program does
// the work; tests put a fake in its place.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "stages/requests.h"

namespace fairway::pipeline {

struct Outcome {
  int status = 0;                 // exit status; what a stage throws passes through
  nlohmann::ordered_json result;  // what its command prints with --json …
  std::string text;               // … and without
};

struct AuditRequest {
  ScoreRequest score;
  std::string receipt;  // of the score, gets the tests' results; empty: none
  int64_t probes = 8;   // random places to change
  bool controls = true;
};

struct SamplesRequest {
  std::string model, tokenizer;
  std::vector<std::string> prompts;
  std::string weights;     // the run whose weights write beside the artifact; empty: none do
  std::string data;        // shards whose validation text gives further prompts with the truth behind them; empty: none
  int64_t beginnings = 3;  // so many of them
  int64_t tokens = 80;
  double temperature = 0.7;
  int64_t seed = 7;
};

struct Stages {
  std::function<Outcome(const TrainRequest&)> train;
  std::function<Outcome(const PackRequest&)> pack;
  // The receipt and its records go to the folder `keep`, where one is named.
  std::function<Outcome(const ScoreRequest&, const std::string& keep)> score;
  std::function<Outcome(const AuditRequest&)> audit;
  std::function<Outcome(const SamplesRequest&)> samples;  // [{"prompt", "text", "float", "truth"}]
  std::function<Outcome(const std::string& folder)> report;
};

using Say = std::function<void(const std::string& line)>;

constexpr int kInterrupted = 130;

}  // namespace fairway::pipeline
