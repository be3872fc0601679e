// One writer at a time: what another process writes is refused before any work, and lists of files name files of their folder.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "app/world.h"
#include "base/writer_lock.h"

namespace {

namespace fs = std::filesystem;
using fairway::WriterLock;
using testing::HasSubstr;

class Writers : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    ASSERT_EQ(run_program(train_smoke(data_, run_, {"--steps", "2"})).status, 0);
  }

  // This process writes at `place`; the program must say so and leave it alone.
  static void expect_refused(const Args& args, const std::string& place) {
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << args[0] << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(place)) << args[0];
    EXPECT_THAT(outcome.err, HasSubstr("another process (" + std::to_string(::getpid()) + ") is writing there")) << args[0];
  }

  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST_F(Writers, OfAFolderAreRefusedWhileAnotherWritesThere) {
  const std::string out = scratch_ / "out", words = data_ + "/words.txt", model = data_ + "/tokenizer.model";
  fs::create_directories(out);
  const WriterLock lock = WriterLock::of_folder(out), run_lock = WriterLock::of_folder(run_);
  expect_refused({"data", "tokenize", words, "--tokenizer", model, "--out", out}, out);
  expect_refused({"data", "tokenize", "--val", words, "--tokenizer", model, "--out", out}, out);
  expect_refused(train_smoke(data_, out), out);
  expect_refused({"run", "smoke", "--data", data_, "--out", out, "--steps", "1"}, out);
  expect_refused({"run", "smoke", "--data", data_, "--out", out, "--steps", "1", "--seeds", "1,2"}, out);
  expect_refused({"import", run_ + "/averaged.safetensors", "--recipe", "smoke", "--out", out}, out);
  expect_refused({"score", run_, "--data", data_, "--mode", "plain", "--out", out}, out);
  expect_refused({"pack", run_}, run_);
  EXPECT_EQ(std::distance(fs::directory_iterator(out), {}), 1) << "only the lock lies there";
}

TEST_F(Writers, OfAFileAreRefusedWhileAnotherWritesIt) {
  const std::string out = scratch_ / "file", words = data_ + "/words.txt";
  const WriterLock lock = WriterLock::of_file(out);
  expect_refused({"data", "train-tokenizer", words, "--vocab", "400", "--out", out}, out);
  expect_refused({"pack", run_, "--out", out}, out);
  expect_refused({"quantize", run_, "--out", out}, out);
  expect_refused({"export", run_, "--out", out}, out);
  expect_refused({"report", run_, "--out", out}, out);
  expect_refused({"analyze", "svd", run_, "--out", out}, out);
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(Writers, AReceiptIsNotChangedByTwoAtOnce) {
  const std::string out = scratch_ / "score", receipt = out + "/receipt.json";
  ASSERT_EQ(run_program({"score", run_, "--data", data_, "--mode", "plain", "--out", out}).status, 0);
  const WriterLock lock = WriterLock::of_file(receipt);
  expect_refused({"audit", run_, "--data", data_, "--receipt", receipt}, receipt);
  expect_refused({"score", run_, "--data", data_, "--mode", "plain", "--out", out}, receipt);
}

TEST_F(Writers, LeaveNoLockBehind) {
  const std::string shards = scratch_ / "shards";
  ASSERT_EQ(run_program({"data", "tokenize", data_ + "/words.txt", "--tokenizer", data_ + "/tokenizer.model", "--out", shards})
                .status,
            0);
  ASSERT_EQ(run_program({"pack", run_, "--set", "quant.rule=rtn"}).status, 0);
  for (const std::string& folder : {shards, run_})
    for (const auto& entry : fs::directory_iterator(folder))
      EXPECT_THAT(entry.path().filename().string(), testing::Not(testing::StartsWith("."))) << folder;
}

// The lock is the kernel's: a killed writer's folder is free at once, and what it had begun goes on.
TEST_F(Writers, AKilledOneLeavesItsFolderFree) {
  const std::string out = scratch_ / "killed";
  {
    Child child(train_smoke(data_, out, {"--steps", "100000"}));
    while (child.running() && json_lines(out + "/metrics.jsonl").size() < 2) ::usleep(10'000);
    EXPECT_EQ(run_program(train_smoke(data_, out, {"--steps", "100000", "--resume"})).status, 2);
    child.send(SIGKILL);
    child.wait();
  }
  EXPECT_TRUE(fs::exists(out + "/.lock"));
  const Outcome outcome = run_program({"pack", run_, "--set", "quant.rule=rtn", "--out", out + "/model.fwy"});
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  EXPECT_EQ(run_program({"score", run_, "--data", data_, "--mode", "plain", "--out", out}).status, 0);
}

TEST_F(Writers, AManifestsShardsStayInItsFolder) {
  const std::string shards = scratch_ / "shards", words = data_ + "/words.txt", victim = scratch_ / "victim.bin";
  const Args tokenize{"data", "tokenize", words, "--tokenizer", data_ + "/tokenizer.model", "--out", shards};
  ASSERT_EQ(run_program(tokenize).status, 0);
  put_file(victim, "precious");
  const std::string good = contents(shards + "/manifest.json"), name = "fineweb_train_000000.bin";
  fs::create_directories(shards + "/fineweb_train_");
  for (const std::string& listed : {std::string("fineweb_train_/../../victim.bin"), std::string("../victim.bin"), victim,
                                    std::string(""), std::string("..")}) {
    SCOPED_TRACE(listed);
    std::string bad = good;
    bad.replace(bad.find(name), name.size(), listed);
    put_file(shards + "/manifest.json", bad);
    for (const Args& args : {tokenize, Args{"data", "inspect", shards}, train_smoke(shards, scratch_ / "other")}) {
      const Outcome outcome = run_program(args);
      EXPECT_EQ(outcome.status, 2) << outcome.text();
      EXPECT_THAT(outcome.err, HasSubstr("manifest.json: the shard \"" + listed + "\""));
    }
    EXPECT_EQ(contents(victim), "precious");
  }
}

// Shards of a text that is half read look whole one by one.
TEST_F(Writers, AFolderInTheMakingIsReadByNobody) {
  const std::string shards = scratch_ / "shards", words = data_ + "/words.txt", model = data_ + "/tokenizer.model";
  const Args tokenize{"data",     "tokenize", words,   "--val", held_out_of(words), "--tokenizer", model,
                      "--shards", "2",        "--out", shards};
  ASSERT_EQ(run_program(tokenize).status, 0);
  for (const char* kind : {"train", "val"}) {
    put_file(shards + "/.tokenize_" + kind + ".tokens", "");
    for (const Args& args : {Args{"data", "inspect", shards}, Args{"data", "overlap", shards, shards},
                             train_smoke(shards, scratch_ / "other"), Args{"score", run_, "--data", shards, "--mode", "plain"},
                             Args{"run", "smoke", "--data", shards, "--out", scratch_ / "whole"}}) {
      const Outcome outcome = run_program(args);
      EXPECT_EQ(outcome.status, 2) << args[0] << outcome.text();
      EXPECT_THAT(outcome.err, HasSubstr(shards + ": its shards are unfinished")) << args[0];
    }
    EXPECT_EQ(run_program(tokenize).status, 0) << "the next one finishes them";
    EXPECT_EQ(run_program({"data", "inspect", shards}).status, 0);
  }
}

TEST_F(Writers, WorkInProgressIsNotWrittenThroughALink) {
  const std::string shards = scratch_ / "shards", victim = scratch_ / "victim";
  fs::create_directories(shards);
  put_file(victim, "precious");
  fs::create_symlink(victim, shards + "/.tokenize_train.tokens");
  const Outcome outcome =
      run_program({"data", "tokenize", data_ + "/words.txt", "--tokenizer", data_ + "/tokenizer.model", "--out", shards});
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr(".tokenize_train.tokens"));
  EXPECT_EQ(contents(victim), "precious");
}

}  // namespace
