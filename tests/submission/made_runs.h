// Three run folders that keep every rule, made without training, for tests that break one rule at a time.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "base/sha256.h"
#include "submission/write_folder.h"

namespace fairway::submission {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

inline void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
inline std::string get(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
inline ordered_json get_json(const fs::path& path) { return ordered_json::parse(get(path)); }

inline void put_sealed(const fs::path& path, ordered_json receipt) {
  receipt.erase("sha256");
  receipt["sha256"] = sha256_hex(receipt.dump());
  put(path, receipt.dump(2));
}

class MadeRuns : public testing::Test {
 protected:
  static constexpr uint64_t kCode = 11;
  const std::string bundle_ = "source code";  // 11 bytes
  const std::string program_ = std::string(64, 'a');

  MadeRuns() : folder_(fs::path(testing::TempDir()) / ("fairway_submission_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    for (const int64_t seed : {1, 2, 3}) make_run(seed);
  }
  ~MadeRuns() override { fs::remove_all(folder_); }

  fs::path run(int64_t seed) const { return folder_ / fmt::format("run{}", seed); }

  void make_run(int64_t seed) {
    const fs::path at = run(seed);
    fs::create_directories(at);
    const Recipe recipe = load_recipe("smoke", std::vector<std::string>{fmt::format("train.seed={}", seed)});
    put(at / "recipe.toml", to_toml(recipe));
    put(at / "timing.jsonl", "{\"step\":39,\"train_seconds\":3.9}\n{\"step\":40,\"train_seconds\":4.0}\n");
    put(at / "metrics.jsonl", "{\"step\":40,\"loss\":2}\n{\"step\":40,\"val_loss\":2.5,\"val_bpb\":1.25}\n");
    put(at / "train.log", fmt::format("model_params:1 recipe:{}\ntrain_batch_tokens:512\nseed:{}\nstep:40/40 train_loss:2.0000 "
                                      "train_time:4000ms step_avg:100.00ms\nema:applying ema weights\n",
                                      recipe_hash(recipe), seed));
    const std::string artifact = fmt::format("artifact of seed {}", seed);
    put(at / "model.fwy", artifact);
    put(at / "averaged.safetensors", "weights");
    put(at / "pack.json", ordered_json{{"artifact_bytes", artifact.size()},
                                       {"code_bytes", kCode},
                                       {"seconds", {{"calibrate", 0.5}, {"quantize and pack", 0.5}}}}
                              .dump());
    const ordered_json score{{"mode", "sliding"},
                             {"val_loss", 2.0 + 0.001 * static_cast<double>(seed)},
                             {"val_bpb", 1.0 + 0.0005 * static_cast<double>(seed)},
                             {"tokens", 640},
                             {"bytes", 1280},
                             {"seconds", 3.5},
                             {"legal", true}};
    put(at / "score.json", score.dump());
    put(at / "score_plain.json", ordered_json{{"mode", "plain"}, {"val_loss", 2.1}, {"val_bpb", 1.05}}.dump());
    ordered_json tests = ordered_json::array();
    for (int t = 1; t <= 11; ++t)
      tests.push_back({{"id", fmt::format("T{}", t)}, {"property", "p"}, {"held", true}, {"detail", "d"}});
    put_sealed(at / "receipt.json", {{"receipt", 1},
                                     {"artifact", {{"bytes", artifact.size()}, {"sha256", sha256_hex(artifact)}}},
                                     {"data", {{"shards", {{{"sha256", "s"}}}}}},
                                     {"tokenizer", {{"sha256", "t"}}},
                                     {"program", {{"sha256", program_}}},
                                     {"settings", {{"mode", "sliding"}, {"tokens", 0}}},
                                     {"legal", true},
                                     {"score", score},
                                     {"audit", {{"legal", true}, {"tests", tests}}}});
  }

  void change(const fs::path& path, const std::function<void(ordered_json&)>& edit) const {
    ordered_json record = get_json(path);
    edit(record);
    if (path.filename().string().starts_with("receipt"))
      put_sealed(path, record);
    else
      put(path, record.dump());
  }

  std::vector<RunFacts> facts() const {
    std::vector<RunFacts> out;
    for (const int64_t seed : {1, 2, 3}) out.push_back(read_run_facts(run(seed)));
    return out;
  }
  std::vector<std::string> broken() const { return broken_rules(facts(), {kCode, program_}); }

  static About about() {
    return {.name = "Made", .author = "A. Author", .github_id = "author", .blurb = "words", .date = "2026-04-27"};
  }
  fs::path write_good() const {
    write_folder(folder_ / "out", facts(), about(), {bundle_, "0.1"});
    return folder_ / "out";
  }

  fs::path folder_;
};

}  // namespace fairway::submission
