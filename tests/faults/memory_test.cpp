// Commands with less memory than they need, as the system limits it: each ends in a sentence and a status, or does its work.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

class LittleMemory : public testing::Test {
 protected:
  void SetUp() override { make_data(data_); }

  // Under limits from what no command starts with to what each has enough of.
  void expect_told(const Args& args) {
    int refused = 0, done = 0;
    for (const int megabytes : {40, 55, 70, 85, 100, 2000}) {
      std::filesystem::remove_all(out_);
      const std::string limit = "--as=" + std::to_string(megabytes * 1'000'000LL);
      const Outcome outcome = Child(args, {"prlimit", limit}).wait();
      const std::string what = args[0] + " in " + std::to_string(megabytes) + " MB: " + outcome.text();
      if (outcome.status == 127) continue;  // the loader has no room for the libraries
      EXPECT_EQ(outcome.signal, 0) << what;
      EXPECT_THAT(outcome.status, testing::AnyOf(0, 1, 2)) << what;
      if (outcome.status == 0) {
        ++done;
        continue;
      }
      ++refused;
      EXPECT_THAT(outcome.err, testing::ContainsRegex("fairway: .*(memory|more than this machine can give)")) << what;
    }
    EXPECT_GT(done, 0) << args[0] << " never had enough";
    EXPECT_GT(refused, 0) << args[0] << " never had too little";
  }

  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", out_ = scratch_ / "out", run_ = scratch_ / "run";
};

TEST_F(LittleMemory, IsToldByEveryCommandThatWrites) {
  const std::string words = data_ + "/words.txt", model = data_ + "/tokenizer.model", artifact = run_ + "/model.fwy";
  ASSERT_EQ(run_program(train_smoke(data_, run_, {"--steps", "2", "--quiet"})).status, 0);
  ASSERT_EQ(run_program({"pack", run_, "--data", data_, "--as-published", "--quiet"}).status, 0);
  expect_told({"data", "tokenize", words, "--tokenizer", model, "--shards", "1", "--out", out_});
  expect_told(train_smoke(data_, out_, {"--steps", "2", "--quiet"}));
  expect_told({"pack", run_, "--data", data_, "--as-published", "--quiet", "--out", artifact});
  expect_told({"score", artifact, "--data", data_, "--quiet", "--out", out_});
  expect_told({"generate", run_, "--tokenizer", model, "--tokens", "4"});
}

}  // namespace
