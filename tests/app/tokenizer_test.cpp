// A tokenizer says how many bytes a token stands for, so a swapped one changes every score: refused wherever weights, shards
// and tokenizer meet.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// As many pieces as the tokenizer of make_data(), of longer words.
std::string longer_tokenizer(const Path& folder) {
  std::string text = english_like(60000), joined;
  int spaces = 0;
  for (const char c : text)
    if (c != ' ' || ++spaces % 2 == 0) joined += c;
  put_file(folder / "longer.txt", joined);
  const Path model = folder / "longer.model";
  EXPECT_EQ(run_json({"data", "train-tokenizer", (folder / "longer.txt").string(), "--vocab", std::to_string(kSmokeVocab),
                      "--out", model.string()})["vocab"],
            kSmokeVocab);
  return contents(model);
}

class TokenizerIdentity : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    longer_ = longer_tokenizer(scratch_.path());
    const Outcome made =
        run_program({"run", "smoke", "--data", data_, "--out", run_, "--steps", "3", "--set", "train.checkpoint_every=2"});
    ASSERT_EQ(made.status, 0) << made.text();
  }
  void swap_tokenizer(const std::string& bytes) const { put_file(data_ + "/tokenizer.model", bytes); }

  // Exit status 2 and a sentence with both files.
  static void refused(const Args& args, const std::string& one, const std::string& other) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << args[0] << "\n" << outcome.text();
    EXPECT_THAT(outcome.err,
                testing::AllOf(HasSubstr("is not the one that"), HasSubstr("SHA-256"), HasSubstr(one), HasSubstr(other)));
  }

  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run", artifact_ = run_ + "/model.fwy", longer_;
};

TEST_F(TokenizerIdentity, AnotherTokenizerIsRefusedWhereverItMeetsTheModel) {
  swap_tokenizer(longer_);
  const std::string model = data_ + "/tokenizer.model";
  refused({"score", artifact_, "--data", data_, "--mode", "plain"}, model, artifact_);
  refused({"score", run_, "--data", data_}, model, run_ + "/averaged.safetensors");
  refused({"audit", artifact_, "--data", data_, "--mode", "plain"}, model, artifact_);
  refused({"analyze", "calibration", artifact_, "--data", data_}, model, artifact_);
  refused({"pack", run_, "--data", data_}, model, run_ + "/averaged.safetensors");
  refused({"quantize", run_, "--data", data_, "--calibration", "train"}, model, run_ + "/averaged.safetensors");
  for (const char* backend : {"cpu", "ref"})
    refused({"generate", artifact_, "--tokenizer", model, "--prompt", "the", "--tokens", "2", "--backend", backend}, model,
            artifact_);
  refused({"generate", run_, "--tokenizer", model, "--prompt", "the", "--tokens", "2"}, model, run_);
  refused({"run", "smoke", "--data", data_, "--out", run_, "--steps", "3", "--set", "train.checkpoint_every=2", "--resume"},
          model, run_ + "/checkpoint/latest.safetensors");
}

TEST_F(TokenizerIdentity, ARunDoesNotGoOnWithAnother) {
  const Path other = scratch_ / "other";
  const Args args = train_smoke(data_, other, {"--steps", "4", "--set", "train.checkpoint_every=2"});
  ASSERT_EQ(run_program(args).status, 0);
  swap_tokenizer(longer_);
  Args resume = args;
  resume.emplace_back("--resume");
  refused(resume, data_ + "/tokenizer.model", (other / "checkpoint").string());
  refused(train_smoke(data_, scratch_ / "fork", {"--steps", "1", "--from", run_}), data_ + "/tokenizer.model",
          run_ + "/averaged.safetensors");
  EXPECT_FALSE(fs::exists(scratch_ / "fork"));
}

TEST_F(TokenizerIdentity, AFileThatMeansTheSameIsTheSame) {
  const double before = run_json({"score", artifact_, "--data", data_, "--mode", "plain"})["val_bpb"];
  swap_tokenizer(contents(data_ + "/tokenizer.model") + std::string("\x22\x00", 2));  // an empty self test of the library's
  EXPECT_EQ(run_json({"score", artifact_, "--data", data_, "--mode", "plain"})["val_bpb"], before);
}

TEST_F(TokenizerIdentity, WhatCannotBeCheckedIsToldInANote) {
  const nlohmann::json result = run_json({"score", artifact_, "--data", data_, "--mode", "plain"});
  ASSERT_EQ(result["notes"].size(), 1U);
  EXPECT_THAT(result["notes"][0].get<std::string>(), HasSubstr("no manifest.json"));
}

TEST(ShardsOfATokenizer, AreRefusedWithAnother) {
  const ScratchFolder scratch;
  make_data(scratch / "data");
  const std::string longer = longer_tokenizer(scratch.path()), text = (scratch / "data" / "words.txt").string();
  const Path shards = scratch / "shards";
  ASSERT_EQ(run_program({"data", "tokenize", text, "--val", held_out_of(text), "--tokenizer",
                         (scratch / "data" / "tokenizer.model").string(), "--out", shards.string()})
                .status,
            0);
  const std::string kept = contents(shards / "tokenizer.model");
  put_file(shards / "tokenizer.model", longer);
  const Outcome train = run_program(train_smoke(shards, scratch / "run", {"--steps", "2"}));
  EXPECT_EQ(train.status, 2) << train.text();
  EXPECT_THAT(train.err, testing::AllOf(HasSubstr("tokenizer.model"), HasSubstr("manifest.json"), HasSubstr("SHA-256")));
  EXPECT_FALSE(fs::exists(scratch / "run"));
  put_file(shards / "tokenizer.model", kept);
  const Outcome good = run_program(train_smoke(shards, scratch / "run", {"--steps", "2"}));
  ASSERT_EQ(good.status, 0) << good.text();
  EXPECT_THAT(good.err, testing::Not(HasSubstr("note:")));
  std::string shard = contents(shards / "fineweb_val_000000.bin");
  shard[shard.size() - 2] ^= 1;
  put_file(shards / "fineweb_val_000000.bin", shard);
  const Outcome changed = run_program({"score", (scratch / "run").string(), "--data", shards.string()});
  EXPECT_EQ(changed.status, 2) << changed.text();
  EXPECT_THAT(changed.err, HasSubstr("changed since"));
}

}  // namespace
