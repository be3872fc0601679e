// Official shards as they are: fineweb_*.bin in a folder, no manifest, and the tokenizer elsewhere. And what two texts share.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class OfficialData : public testing::Test {
 protected:
  void SetUp() override {
    make_data(scratch_ / "made");
    fs::create_directories(scratch_ / "official");
    for (const auto& entry : fs::directory_iterator(scratch_ / "made"))
      if (entry.path().extension() == ".bin") fs::copy(entry.path(), scratch_ / "official" / entry.path().filename());
    fs::copy(scratch_ / "made" / "tokenizer.model", scratch_ / "elsewhere.model");
  }
  std::string at(const std::string& name) const { return scratch_ / name; }
  Args with_tokenizer(Args args) const {
    args.insert(args.end(), {"--tokenizer", at("elsewhere.model")});
    return args;
  }
  ScratchFolder scratch_;
};

TEST_F(OfficialData, RunsFromRecipeToReport) {
  const Args run{"run", "smoke", "--data", at("official"), "--out", at("run"), "--steps", "4"};
  const Outcome lacking = run_program(run);
  EXPECT_EQ(lacking.status, 2);
  EXPECT_THAT(lacking.err, HasSubstr("name it with --tokenizer"));
  const json result = run_json(with_tokenizer(run));
  EXPECT_EQ(result["legal"], true);
  EXPECT_TRUE(fs::exists(scratch_ / "run" / "samples.json"));
  Args again = with_tokenizer(run);
  again.push_back("--resume");
  EXPECT_EQ(run_json(again)["score_bpb"], result["score_bpb"]);
  // The receipt remembers where the tokenizer was.
  const json verified = run_json({"audit", "--verify", at("run/receipt.json")});
  EXPECT_EQ(verified["held"], true) << verified;
}

TEST_F(OfficialData, EachStageTakesTheTokenizer) {
  run_json(with_tokenizer(train_smoke(scratch_ / "official", scratch_ / "run", {"--steps", "2"})));
  const Args score{"score", at("run"), "--data", at("official"), "--mode", "plain"};
  EXPECT_GT(run_json(score)["val_bpb"], 0) << "the run remembers it";
  std::filesystem::remove(scratch_ / "run" / "origin.json");
  EXPECT_EQ(run_program(score).status, 2);
  EXPECT_GT(run_json(with_tokenizer(score))["val_bpb"], 0);
  const Outcome audit = run_program(with_tokenizer({"audit", at("run"), "--data", at("official"), "--mode", "plain"}));
  EXPECT_THAT(audit.out, HasSubstr("legal:")) << audit.text();
  EXPECT_EQ(
      run_json(with_tokenizer({"analyze", "lens", at("run"), "--data", at("official"), "--tokens", "64"})).contains("lens"),
      true);
}

// A folder of `data tokenize` knows its tokenizer: another one is refused wherever it lies.
TEST_F(OfficialData, AManifestStillNamesItsTokenizer) {
  put_file(scratch_ / "words.txt", english_like(9000));
  const Path words = scratch_ / "words.txt";
  run_json(
      {"data", "tokenize", words, "--tokenizer", at("elsewhere.model"), "--val", held_out_of(words), "--out", at("shards")});
  put_file(scratch_ / "other.txt", "zebra " + english_like(20000));
  run_json({"data", "train-tokenizer", at("other.txt"), "--vocab", std::to_string(kSmokeVocab), "--out", at("other.model")});
  Args train = train_smoke(scratch_ / "shards", scratch_ / "run", {"--steps", "2", "--tokenizer", at("other.model")});
  const Outcome refused = run_program(train);
  EXPECT_EQ(refused.status, 2) << refused.text();
  EXPECT_THAT(refused.err, HasSubstr("other.model"));
  train.back() = at("absent.model");
  EXPECT_EQ(run_program(train).status, 2);
}

TEST_F(OfficialData, OverlapCountsDocumentsOfBothTexts) {
  const auto shards = [&](const std::string& name, const std::string& kind, const std::vector<int>& documents) {
    std::vector<uint16_t> tokens;
    for (const int document : documents) {
      tokens.push_back(1);
      for (int i = 0; i < 40; ++i) tokens.push_back(static_cast<uint16_t>(2 + (document * 53 + i * 7) % 500));
    }
    fs::create_directories(scratch_ / name);
    fairway::data::write_shard(scratch_ / name / ("fineweb_" + kind + "_000000.bin"), tokens);
    return at(name);
  };
  const std::string train = shards("train", "train", {1, 2, 3, 4}), some = shards("some", "val", {7, 3, 8, 1}),
                    none = shards("none", "val", {9, 10});
  const json shared = run_json({"data", "overlap", train, some});
  EXPECT_EQ(shared["shared_documents"], 2);
  EXPECT_EQ(shared["train_documents"], 4);
  EXPECT_EQ(shared["val_documents"], 4);
  EXPECT_EQ(shared["first"], (json{{"document", 2}, {"token", 41}}));
  EXPECT_EQ(run_json({"data", "overlap", train, none})["shared_documents"], 0);
  EXPECT_EQ(run_program({"data", "overlap", some, train}).status, 2);
  fs::copy(scratch_ / "elsewhere.model", scratch_ / "train" / "tokenizer.model");
  put_file(scratch_ / "other.txt", "zebra " + english_like(20000));
  run_json({"data", "train-tokenizer", at("other.txt"), "--vocab", "400", "--out", at("some/tokenizer.model")});
  const Outcome apart = run_program({"data", "overlap", train, some});
  EXPECT_EQ(apart.status, 2);
  EXPECT_THAT(apart.err, HasSubstr("their tokenizers differ"));
}

}  // namespace
