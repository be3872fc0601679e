// From a trained run to an artifact and back: budgets, codecs, scoring and text from packed bytes, refusals.
#include <gmock/gmock.h>

#include <fstream>

#include "app/world.h"

namespace {

using nlohmann::json;
using testing::HasSubstr;

class Pack : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    run_json(train_smoke(data_, run_, {"--steps", "12"}));
  }
  Args pack(const Args& more) const {
    Args args{"pack", run_, "--data", data_, "--tokens", "2048"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run", file_ = scratch_ / "m.fwy";
};

TEST_F(Pack, TellsItsBytesAndRepeatsThem) {
  const json result = run_json(pack({"--out", file_}));
  EXPECT_EQ(result["artifact_bytes"], std::filesystem::file_size(file_));
  EXPECT_LE(result["submission_bytes"].get<int64_t>(), 16'000'000);
  int64_t ledger = 0;
  for (const json& line : result["ledger"]) ledger += line["bytes"].get<int64_t>();
  EXPECT_EQ(ledger, result["artifact_bytes"].get<int64_t>());
  for (const char* field : {"budget", "code_bytes", "bits_per_weight", "entropy_bits_per_weight", "pruned", "tensors",
                            "damage_estimate", "divergence"})
    EXPECT_TRUE(result.contains(field)) << field;
  EXPECT_TRUE(std::filesystem::exists(run_ + "/pack.json"));
  double staged = 0;
  for (const auto& [stage, seconds] : result["stages"].items()) staged += seconds.get<double>();
  EXPECT_GE(staged + 0.01, result["seconds"]["calibrate"].get<double>() + result["seconds"]["quantize and pack"].get<double>());
  for (const char* stage : {"weights", "calibration text", "gradients", "predictions", "recipe's own setting", "steps measured",
                            "quantizing", "coding", "divergence", "halves tuned", "file"})
    EXPECT_TRUE(result["stages"].contains(stage)) << stage;
  const std::string first = contents(file_);
  run_json(pack({"--out", file_, "--threads", "1"}));
  EXPECT_TRUE(contents(file_) == first) << "one thread and two give different files";
}

TEST_F(Pack, MeetsABudgetWithEveryCodec) {
  const int64_t natural = run_json(pack({"--out", file_, "--as-published"}))["artifact_bytes"].get<int64_t>();
  for (const char* codec : {"rans", "brotli", "lzma", "best"}) {
    const int64_t budget = natural * 3 / 4;
    const json result = run_json(pack({"--out", file_, "--budget", std::to_string(budget), "--codec", codec}));
    EXPECT_LE(result["artifact_bytes"].get<int64_t>(), budget) << codec;
    EXPECT_GE(result["artifact_bytes"].get<int64_t>(), budget * 995 / 1000) << codec;
    EXPECT_EQ(result["method"], "allocator");
  }
}

// On text, which can be learnt: what the setting as published takes buys a better model, and a little more a better one still.
TEST_F(Pack, ALargerBudgetIsNeverWorse) {
  const std::string shards = scratch_ / "shards", words = data_ + "/words.txt", run = scratch_ / "learnt";
  run_json(
      {"data", "tokenize", words, "--tokenizer", data_ + "/tokenizer.model", "--out", shards, "--val", held_out_of(words)});
  run_json(train_smoke(shards, run, {"--steps", "120"}));
  const auto packed = [&](const Args& more) {
    Args args{"pack", run, "--data", shards, "--out", file_};
    args.insert(args.end(), more.begin(), more.end());
    return run_json(args);
  };
  const auto loss = [&] { return run_json({"score", file_, "--data", shards, "--mode", "plain"})["val_loss"].get<double>(); };
  const json own = packed({"--as-published"});
  EXPECT_EQ(own["method"], "recipe");
  const auto natural = own["artifact_bytes"].get<int64_t>();
  const double own_loss = loss(), own_damage = own["damage_estimate"].get<double>();
  double least = 1e9, least_damage = 1e9;
  for (const int64_t budget : {natural * 7 / 10, natural * 11 / 10}) {
    const json best = packed({"--budget", std::to_string(budget)});
    EXPECT_EQ(best["method"], "allocator");
    EXPECT_LE(best["artifact_bytes"].get<int64_t>(), budget);
    EXPECT_LT(best["damage_estimate"].get<double>(), least_damage) << budget;
    const double found = loss();
    EXPECT_LT(found, least) << budget << " bytes; as published it takes " << natural;
    least = found;
    least_damage = best["damage_estimate"].get<double>();
  }
  EXPECT_LT(least, own_loss);
  EXPECT_LT(least_damage, own_damage);
}

TEST_F(Pack, BudgetsHaveUnits) {
  const json plain = run_json(pack({"--out", file_, "--budget", "150000"}));
  EXPECT_EQ(plain["budget"], 150'000);
  const std::string bytes = contents(file_);
  EXPECT_EQ(run_json(pack({"--out", file_, "--budget", "150KB"}))["budget"], 150'000);
  EXPECT_TRUE(contents(file_) == bytes);
  EXPECT_EQ(run_json(pack({"--out", file_, "--budget", "16 mb"}))["budget"], 16'000'000);
  for (const char* wrong : {"0", "-5", "16XB", "1.5MB", "many", "9000PB"}) {
    const Outcome outcome = run_program(pack({"--out", file_, "--budget", wrong}));
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, testing::AllOf(HasSubstr("--budget"), HasSubstr(wrong), HasSubstr("500KB"))) << wrong;
  }
}

TEST_F(Pack, ScoresAndSpeaksFromPackedBytes) {
  run_json(pack({"--out", file_}));
  const json packed = run_json({"score", file_, "--data", data_, "--mode", "plain"});
  run_json({"unpack", file_, "--out", scratch_ / "w.safetensors"});
  const json unpacked =
      run_json({"score", scratch_ / "w.safetensors", "--recipe", run_ + "/recipe.toml", "--data", data_, "--mode", "plain"});
  EXPECT_EQ(packed["val_loss"], unpacked["val_loss"]);
  EXPECT_EQ(packed["legal"], true);
  const json text = run_json({"generate", file_, "--tokenizer", data_ + "/tokenizer.model", "--prompt", "a", "--tokens", "4"});
  EXPECT_TRUE(text.contains("first_token_ms"));
  run_json({"quantize", run_, "--tokens", "2048", "--out", scratch_ / "q.fwy"});
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "q.fwy"));
}

TEST_F(Pack, RefusesWhatCannotBe) {
  run_json(pack({"--out", file_}));
  const std::string whole = contents(file_);
  std::ofstream(scratch_ / "cut.fwy") << whole.substr(0, whole.size() / 2);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  std::ofstream(scratch_ / "flipped.fwy") << flipped;
  const std::vector<std::pair<Args, std::string>> cases{
      {pack({"--out", file_, "--budget", "100"}), "--budget 100"},
      {pack({"--out", file_, "--budget", "20000", "--as-published"}), "the recipe's own setting takes"},
      {pack({"--out", scratch_ / "no" / "m.fwy"}), "--out"},
      {pack({"--out", file_, "--codec", "zip"}), "zip"},
      {{"score", scratch_ / "cut.fwy", "--data", data_}, "cut.fwy"},
      {{"score", scratch_ / "flipped.fwy", "--data", data_}, "checksum"},
      {{"unpack", run_ + "/recipe.toml", "--out", file_}, "is a recipe; expected an artifact"},
      {{"score", file_, "--recipe", "smoke", "--data", data_}, "--recipe"}};
  for (const auto& [args, says] : cases) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

}  // namespace
