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

  // Every target costs as much, a number that floats hold exactly.
  static constexpr int64_t kTargets = 640, kBytes = 151'078'222;
  static double nll_of(int64_t seed) { return 150000 + static_cast<double>(seed); }
  static Score measured(int64_t seed) { return measure(BlockSums{{kTargets * nll_of(seed)}, {kBytes}}, kTargets); }
  static std::string bpb_text(int64_t seed) { return fmt::format("{:.8f}", measured(seed).bits_per_byte()); }
  static ordered_json score_of(int64_t seed) {
    return {{"mode", "sliding"},
            {"val_loss", measured(seed).loss()},
            {"val_bpb", measured(seed).bits_per_byte()},
            {"tokens", kTargets},
            {"bytes", kBytes},
            {"seconds", 3.5},
            {"legal", true},
            {"packed", true},
            {"whole", true},
            {"text", "x"},
            {"tokenizer", "t"},
            {"context", 64}};
  }
  static FileIdentity write_records(const fs::path& folder, int64_t seed) {
    const std::vector<uint16_t> stream(kTargets + 1);
    ScoreLedger ledger(stream);
    ledger.score(1, std::vector<TargetScore>(kTargets, {static_cast<float>(nll_of(seed)), 0}));
    return write_score_records(folder / kRecordsName, ledger, std::vector<DocumentSize>{{kTargets, kBytes}});
  }

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
                                       {"calibration", "self"},
                                       {"seconds", {{"calibrate", 0.5}, {"quantize and pack", 0.5}}}}
                              .dump());
    put(at / "machine.json", ordered_json{{"cpu", "a cpu"}, {"launch", {{"backend", "cuda"}, {"ranks", 8}}}}.dump());
    const BlockSums sums{{kTargets * nll_of(seed)}, {kBytes}};
    const ordered_json score = score_of(seed);
    put(at / "score.json", score.dump());
    put(at / "score_plain.json", ordered_json{{"mode", "plain"}, {"val_loss", 2.1}, {"val_bpb", 1.05}}.dump());
    ordered_json tests = ordered_json::array();
    for (int t = 1; t <= 12; ++t)
      tests.push_back({{"id", fmt::format("T{}", t)}, {"property", "p"}, {"held", true}, {"detail", "d"}});
    put_sealed(at / "receipt.json", {{"receipt", 1},
                                     {"artifact", {{"bytes", artifact.size()}, {"sha256", sha256_hex(artifact)}}},
                                     {"data", {{"shards", {{{"sha256", "s"}}}}, {"shared_documents", 0}}},
                                     {"tokenizer", {{"sha256", "t"}}},
                                     {"program", {{"sha256", program_}}},
                                     {"settings", {{"mode", "sliding"}, {"tokens", 0}, {"context", 64}}},
                                     {"legal", true},
                                     {"score", score},
                                     {"records",
                                      {{"sha256", "r"},
                                       {"file", {{"sha256", write_records(at, seed).sha256}}},
                                       {"targets", kTargets},
                                       {"block", kScoreBlock},
                                       {"nats", sums.nats},
                                       {"bytes", sums.bytes}}},
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
    write_folder(folder_ / "out", facts(), about(), {bundle_, "true", "0.1"});
    return folder_ / "out";
  }

  fs::path folder_;
};

}  // namespace fairway::submission
