// A program whose commands leave the files that the real ones leave, in no time, and that can be killed at any call.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
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
  std::vector<Arguments> calls;

  Execute execute() {
    return [this](const Arguments& command) { return run(command); };
  }
  int count(const std::string& name) const {
    int found = 0;
    for (const Arguments& call : calls) found += call.front() == name ? 1 : 0;
    return found;
  }

 private:
  static std::string flag(const Arguments& command, const std::string& name) {
    for (size_t i = 0; i + 1 < command.size(); ++i) {
      if (command[i] == name) return command[i + 1];
    }
    return "";
  }
  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  Outcome run(const Arguments& command) {
    const int call = static_cast<int>(calls.size());
    calls.push_back(command);
    if (call == kill_at && !after_writing) throw Killed{};
    Outcome outcome = work(command);
    if (call == kill_at) throw Killed{};
    if (call == interrupt_at) outcome.status = kInterrupted;
    return outcome;
  }

  Outcome work(const Arguments& command) {
    const std::string& name = command.front();
    if (name == "train") return train(command);
    const fs::path folder = fs::is_directory(command.back()) ? fs::path(command.back()) : fs::path();
    if (name == "pack") {
      const nlohmann::ordered_json result{{"artifact_bytes", 5},
                                          {"code_bytes", 7},
                                          {"submission_bytes", 12},
                                          {"seconds", {{"calibrate", 1.0}, {"quantize and pack", 2.0}}}};
      put(fs::path(command[1]) / "model.fwy", "model");
      put(fs::path(command[1]) / "pack.json", result.dump());
      return {0, result};
    }
    if (name == "score") {
      const nlohmann::ordered_json result{{"mode", flag(command, "--mode")},
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
      if (const std::string out = flag(command, "--out"); !out.empty()) {
        put(fs::path(out) / "score.json", result.dump());
        put(fs::path(out) / "receipt.json", "{}");
        put(fs::path(out) / "score.records", "records");
      }
      return {0, result};
    }
    if (name == "audit") {
      put(flag(command, "--receipt"), R"({"audit":1})");
      return {legal ? 0 : 1, {{"legal", legal}, {"tests", nlohmann::ordered_json::array()}}};
    }
    if (name == "report") put(fs::path(command[1]) / "report.html", "page");
    if (name == "generate") return {0, {{"text", "words"}}};
    return {0, nlohmann::ordered_json::object()};
  }

  Outcome train(const Arguments& command) {
    std::vector<std::string> overrides;
    for (size_t i = 0; i + 1 < command.size(); ++i) {
      if (command[i] == "--set") overrides.push_back(command[i + 1]);
    }
    const Recipe recipe = load_recipe(command[1], overrides);
    const fs::path out = flag(command, "--out");
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
             {"seconds", {{"startup", 0.5}}}}};
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
