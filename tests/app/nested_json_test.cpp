// JSON nested so deep that destroying it would overflow the stack: exit status 2 and a sentence that names the file.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class NestedJson : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    ASSERT_EQ(run_program({"run", "smoke", "--data", data_, "--out", run_, "--steps", "2", "--quiet"}).status, 0);
  }
  static std::string nested() { return std::string(60'000, '[') + std::string(60'000, ']'); }
  static std::string nested_object() {
    std::string text;
    for (int i = 0; i < 60'000; ++i) text += "{\"seeds\":";
    return text + "1" + std::string(60'000, '}');
  }
  // Puts nested JSON in the place of `file` while the command runs.
  static void expect_refused(const Args& args, const Path& file) {
    const std::string kept = contents(file);
    for (const std::string& bad : {nested(), nested_object()}) {
      put_file(file, bad + "\n");
      const Outcome outcome = run_program(args);
      EXPECT_EQ(outcome.status, 2) << args[0] << " " << file << outcome.text();
      EXPECT_THAT(outcome.err, HasSubstr(file.filename().string())) << args[0];
      EXPECT_THAT(outcome.err, HasSubstr("nests deeper than")) << args[0];
    }
    put_file(file, kept);
  }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST_F(NestedJson, IsRefusedByEveryCommandThatReadsIt) {
  const Path run = run_;
  for (const char* name :
       {"run.json", "score.json", "pack.json", "audit.json", "samples.json", "machine.json", "metrics.jsonl", "timing.jsonl"})
    expect_refused({"report", run_}, run / name);
  expect_refused({"report", run_, "--serve"}, run / "score.json");
  expect_refused({"report", run_, "--tensorboard", scratch_ / "events"}, run / "metrics.jsonl");
  expect_refused({"compare", run_, run_, "--against", run_, run_}, run / "score.json");
  expect_refused({"audit", "--verify", run_ + "/receipt.json"}, run / "receipt.json");
  expect_refused({"audit", run_ + "/model.fwy", "--data", data_}, run / "timing.jsonl");
  expect_refused({"run", "smoke", "--data", data_, "--out", run_, "--steps", "2", "--resume"}, run / "run.json");
  expect_refused(train_smoke(data_, run_, {"--steps", "2", "--resume"}), run / "metrics.jsonl");
  expect_refused({"submission", run_, "--out", scratch_ / "sub", "--name", "n", "--author", "a", "--github-id", "g"},
                 run / "score.json");
  expect_refused({"analyze", "svd", run_}, run / "analysis.json");
  expect_refused({"score", run_}, run / "origin.json");
}

TEST_F(NestedJson, IsRefusedInFoldersAndText) {
  const Path folder = scratch_ / "submission", seeds = scratch_ / "seeds";
  fs::create_directories(folder);
  fs::create_directories(seeds);
  expect_refused({"submission", "--check", folder}, folder / "submission.json");
  expect_refused({"compare", seeds, "--against", run_}, seeds / "seeds.json");
  expect_refused({"train", "smoke", "--data", data_, "--out", scratch_ / "other"}, Path(data_) / "manifest.json");
  const std::string text = scratch_ / "deep.jsonl", model = data_ + "/tokenizer.model";
  put_file(text, "{\"text\": \"one\"}\n{\"text\": " + nested() + "}\n");
  const Outcome outcome = run_program({"data", "tokenize", text, "--tokenizer", model, "--out", scratch_ / "shards"});
  EXPECT_EQ(outcome.status, 2) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("deep.jsonl: line 2: its JSON nests deeper than"));
}

}  // namespace
