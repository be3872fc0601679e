// A program whose stages leave the files that the real ones leave, in no time, and that can be killed at any call.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "pipeline/chain.h"

namespace fairway::pipeline {

namespace fs = std::filesystem;

struct Killed {};  // not an exception of the program's: nothing may catch it

class FakeProgram {
 public:
  int kill_at = -1;            // the call, counted from 0, that is killed …
  bool after_writing = false;  // … before or after it has written its files
  int interrupt_at = -1;       // the call that returns 130
  bool legal = true;
  int64_t scored_bytes = 151'078'222;                                             // those of the official validation text
  std::function<double(const Recipe&)> loss = [](const Recipe&) { return 2.0; };  // of a training run
  std::vector<std::string> calls;                                                 // the stages' names
  std::vector<ScoreRequest> scores;

  Stages stages() {
    return {.train = [this](const TrainRequest& request) { return call("train", [&] { return train(request); }); },
            .pack = [this](const PackRequest& request) { return call("pack", [&] { return pack(request); }); },
            .score = [this](const ScoreRequest& request,
                            const std::string& keep) { return call("score", [&] { return score(request, keep); }); },
            .audit = [this](const AuditRequest& request) { return call("audit", [&] { return audit(request); }); },
            .samples =
                [this](const SamplesRequest& request) {
                  return call("samples", [&] {
                    return Outcome{.result = {{{"prompt", request.prompts.front()}, {"text", "words"}}}};
                  });
                },
            .report =
                [this](const fs::path& folder) {
                  return call("report", [&] {
                    put(folder / "report.html", "page");
                    return Outcome{.result = nlohmann::ordered_json::object()};
                  });
                }};
  }
  int count(const std::string& name) const { return static_cast<int>(std::count(calls.begin(), calls.end(), name)); }

 private:
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  Outcome call(const std::string& name, const std::function<Outcome()>& work) {
    const int number = static_cast<int>(calls.size());
    calls.push_back(name);
    if (number == kill_at && !after_writing) throw Killed{};
    Outcome outcome = work();
    if (number == kill_at) throw Killed{};
    if (number == interrupt_at) outcome.status = kInterrupted;
    return outcome;
  }

  Outcome pack(const PackRequest& request) {
    const nlohmann::ordered_json result{{"artifact_bytes", 5},
                                        {"code_bytes", 7},
                                        {"submission_bytes", 12},
                                        {"seconds", {{"calibrate", 1.0}, {"quantize and pack", 2.0}}}};
    put(fs::path(request.from) / "model.fwy", "model");
    put(fs::path(request.from) / "pack.json", result.dump());
    return {0, result, ""};
  }

  Outcome score(const ScoreRequest& request, const std::string& keep) {
    scores.push_back(request);
    const nlohmann::ordered_json result{{"mode", name_of(*request.mode)},
                                        {"val_loss", 1.5},
                                        {"val_bpb", 0.9},
                                        {"tokens", 64},
                                        {"bytes", scored_bytes},
                                        {"seconds", 3.0},
                                        {"legal", true},
                                        {"packed", true},
                                        {"whole", true},
                                        {"text", "text"},
                                        {"tokenizer", "tokenizer"},
                                        {"context", 64}};
    if (!keep.empty()) {
      put(fs::path(keep) / "score.json", result.dump());
      put(fs::path(keep) / "receipt.json", "{}");
      put(fs::path(keep) / "score.records", "records");
    }
    return {0, result, ""};
  }

  Outcome audit(const AuditRequest& request) const {
    put(request.receipt, R"({"audit":1})");
    return {legal ? 0 : 1, {{"legal", legal}, {"tests", nlohmann::ordered_json::array()}}, ""};
  }

  Outcome train(const TrainRequest& request) const {
    const Recipe& recipe = request.recipe;
    const fs::path out = request.out;
    const double value = loss(recipe);
    fs::create_directories(out / "checkpoint");
    put(out / "recipe.toml", to_toml(recipe));
    put(out / "averaged.safetensors", "weights of seed " + std::to_string(recipe.train.seed));
    for (const char* file : {"metrics.jsonl", "timing.jsonl"}) put(out / file, "{}\n");
    put(out / "train.log", "seed:" + std::to_string(recipe.train.seed) + "\n");
    return {0,
            {{"steps", recipe.train.steps},
             {"step_ms", 1.0},
             {"train_seconds", 4.0},
             {"tokens_per_second", 5.0},
             {"loss", value},
             {"val_loss", value},
             {"val_bpb", value},
             {"seconds", {{"startup", 0.5}}}},
            ""};
  }
};

class PipelineTest : public testing::Test {
 protected:
  PipelineTest() : folder_(fs::path(testing::TempDir()) / ("fairway_pipeline_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~PipelineTest() override { fs::remove_all(folder_); }
  ChainRequest request() const {
    return {.recipe = "smoke", .overrides = {}, .data = "shards", .out = (folder_ / "run").string(), .program = "p"};
  }
  static std::string contents(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  const Say quiet_ = [](const std::string&) {};
  fs::path folder_;
  FakeProgram program_;
};

}  // namespace fairway::pipeline
