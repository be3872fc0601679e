#include "app/world.h"

#include <fstream>
#include <regex>
#include <sstream>

#include "base/rng.h"
#include "data/shard.h"

std::vector<uint16_t> random_tokens(size_t count, int vocab, uint64_t seed) {
  fairway::Rng rng(seed);
  std::vector<uint16_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] =
        i == 0 || rng.below(40) == 0 ? uint16_t{1} : static_cast<uint16_t>(2 + rng.below(static_cast<uint64_t>(vocab) - 2));
  return tokens;
}

void make_train_shards(const Path& folder, int vocab, size_t tokens) {
  std::filesystem::create_directories(folder);
  fairway::data::write_shard(folder / "fineweb_train_000000.bin", random_tokens(tokens, vocab, 1));
  fairway::data::write_shard(folder / "fineweb_train_000001.bin", random_tokens(tokens / 2, vocab, 2));
}

std::string english_like(size_t bytes) {
  static const char* const kSyllables[] = {"the", "an",  "ing", "er",   "re",   "on",  "at", "en", "al", "or", "ti",  "es",
                                           "st",  "ar",  "nd",  "to",   "ou",   "is",  "it", "ha", "le", "ve", "com", "pro",
                                           "un",  "dis", "ble", "ment", "ness", "ful", "wh", "sh", "qu", "th", "ck",  "ee"};
  fairway::Rng rng(7);
  std::string text;
  while (text.size() < bytes) {
    for (uint64_t i = 0, n = 1 + rng.below(3); i < n; ++i) text += kSyllables[rng.below(std::size(kSyllables))];
    text += rng.below(12) == 0 ? ".\n" : rng.below(9) == 0 ? ", " : " ";
  }
  return text + "\n";
}

std::string held_out_of(const Path& words) {
  const Path path = words.parent_path() / ("held_out_" + words.filename().string());
  put_file(path, "thereon " + contents(words));
  return path.string();
}

void make_data(const Path& folder) {
  make_train_shards(folder);
  fairway::data::write_shard(folder / "fineweb_val_000000.bin", random_tokens(1500, kSmokeVocab, 3));
  put_file(folder / "words.txt", english_like(30000));
  const Outcome made = run_program({"data", "train-tokenizer", (folder / "words.txt").string(), "--vocab",
                                    std::to_string(kSmokeVocab), "--out", (folder / "tokenizer.model").string()});
  ASSERT_EQ(made.status, 0) << made.text();
}

std::string contents(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

std::vector<nlohmann::json> json_lines(const Path& path) {
  std::vector<nlohmann::json> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    out.push_back(nlohmann::json::parse(line, nullptr, false));
    EXPECT_TRUE(out.back().is_object()) << path << ": " << line;
  }
  return out;
}

Args train_smoke(const Path& data, const Path& out, const Args& more) {
  Args args{"train", "smoke", "--data", data.string(), "--out", out.string()};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

RunBytes bytes_of_run(const Path& run) {
  return {contents(run / "metrics.jsonl"), contents(run / "checkpoint" / "latest.safetensors"),
          contents(run / "averaged.safetensors"),
          std::regex_replace(contents(run / "train.log"),
                             std::regex("(train_time|step_avg|eval_time|seconds|allocated|reserved):( ?)[0-9.]+( MiB|m?s?)"),
                             "$1")};
}

void expect_same(const RunBytes& have, const RunBytes& want, const std::string& what) {
  EXPECT_FALSE(want.metrics.empty() || want.checkpoint.empty() || want.averaged.empty()) << what;
  EXPECT_EQ(have.metrics, want.metrics) << what;
  EXPECT_EQ(have.log, want.log) << what;
  EXPECT_TRUE(have.checkpoint == want.checkpoint) << what << ": checkpoints differ";
  EXPECT_TRUE(have.averaged == want.averaged) << what << ": averaged weights differ";
}
