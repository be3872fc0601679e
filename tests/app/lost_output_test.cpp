// Standard streams and records that cannot be written: a lost result is an error, lost progress is not, and training ends
// saved.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "app/world.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// The program with the shell's redirections.
Outcome run_redirected(const Args& args, const std::string& redirections) {
  return Child(args, {"sh", "-c", "exec \"$@\" " + redirections, "sh"}).wait();
}

class LostOutput : public testing::Test {
 protected:
  void SetUp() override { make_data(data_); }
  std::vector<std::string> shards() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(data_)) out.push_back(contents(entry.path()));
    return out;
  }
  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run";
};

TEST(LostResult, OnStandardOutputIsAnError) {
  for (const Args& args : {Args{"recipes", "--json"}, Args{"recipes"}, Args{"--version"}, Args{"train", "--help"},
                           Args{"recipe", "show", "best"}, Args{"help", "train"}}) {
    SCOPED_TRACE(args[0]);
    for (const char* lost : {">/dev/full", ">&-"}) {
      const Outcome outcome = run_redirected(args, lost);
      EXPECT_EQ(outcome.status, 1) << lost << outcome.text();
      EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written")) << lost;
    }
  }
}

TEST(LostResult, OnAPipeThatNobodyReadsIsAnError) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::dup2(ends[1], 9), 9);
  ::close(ends[0]), ::close(ends[1]);
  const Outcome outcome = run_redirected({"recipes", "--json"}, ">&9");
  ::close(9);
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("standard output cannot be written (Broken pipe)"));
}

TEST_F(LostOutput, OfProgressDoesNotEndTraining) {
  const std::vector<std::string> before = shards();
  for (const char* lost : {"2>/dev/full", "2>&-", "<&- 2>&-"}) {
    SCOPED_TRACE(lost);
    const std::string run = scratch_ / ("run" + std::to_string(std::hash<std::string>{}(lost)));
    const Outcome outcome = run_redirected(train_smoke(data_, run, {"--steps", "3"}), lost);
    EXPECT_EQ(outcome.status, 0) << outcome.text();
    EXPECT_TRUE(fs::exists(run + "/averaged.safetensors"));
  }
  EXPECT_EQ(shards(), before) << "a closed stream's descriptor was given to a file";
}

TEST_F(LostOutput, OfTheResultComesAfterTheRunIsSaved) {
  for (const char* lost : {">/dev/full", "<&- >&- 2>&-"}) {
    SCOPED_TRACE(lost);
    const std::string run = scratch_ / ("run" + std::to_string(std::hash<std::string>{}(lost)));
    EXPECT_EQ(run_redirected(train_smoke(data_, run, {"--steps", "2", "--json"}), lost).status, 1);
    EXPECT_TRUE(fs::exists(run + "/averaged.safetensors"));
    EXPECT_EQ(json_lines(run + "/metrics.jsonl").size(), 3u);  // with the validation: nothing else was written into it
  }
}

TEST_F(LostOutput, OfRecordsEndsTrainingSaved) {
  for (const std::string name : {"metrics.jsonl", "timing.jsonl"}) {
    SCOPED_TRACE(name);
    const std::string run = scratch_ / name;
    fs::create_directories(run);
    fs::create_symlink("/dev/full", run + "/" + name);
    const Outcome outcome = run_program(train_smoke(data_, run, {"--steps", "4"}));
    EXPECT_EQ(outcome.status, 1) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr(name + ": cannot be written (No space left on device)"));
    EXPECT_THAT(outcome.err, HasSubstr("the checkpoint after step 1 is kept"));
    fs::remove(run + "/" + name);
    const Outcome resumed = run_program(train_smoke(data_, run, {"--steps", "4", "--resume"}));
    EXPECT_EQ(resumed.status, 0) << resumed.text();
    EXPECT_THAT(resumed.err, HasSubstr("resuming after step 1"));
    EXPECT_TRUE(fs::exists(run + "/averaged.safetensors"));
  }
}

TEST_F(LostOutput, OfTheLogIsAnErrorBeforeAnyStep) {
  fs::create_directories(run_);
  fs::create_symlink("/dev/full", run_ + "/train.log");
  const Outcome outcome = run_program(train_smoke(data_, run_, {"--steps", "4"}));
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("train.log: cannot be written (No space left on device)"));
}

// A run whose terminal goes away saves as one that is asked to stop; under nohup it goes on.
TEST_F(LostOutput, OfTheTerminalEndsTrainingSaved) {
  Child child(train_smoke(data_, run_, {"--steps", "100000"}));
  while (child.running() && json_lines(run_ + "/metrics.jsonl").size() < 2) ::usleep(10'000);
  child.send(SIGHUP);
  const Outcome outcome = child.wait();
  EXPECT_EQ(outcome.status, 130) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("interrupted: saved after step"));
  EXPECT_TRUE(fs::exists(run_ + "/checkpoint/latest.safetensors"));
  const std::string other = scratch_ / "nohup";
  const Args ignoring{"sh", "-c", "trap '' HUP; exec \"$@\"", "sh"};
  Child kept(train_smoke(data_, other, {"--steps", "40"}), ignoring);
  while (kept.running() && !fs::exists(other + "/metrics.jsonl")) ::usleep(10'000);
  kept.send(SIGHUP);
  EXPECT_EQ(kept.wait().status, 0);
}

// Nobody would notice that part of the evidence is gone.
// Files that may not grow: the signal that the system sends then does not end training unsaved.
TEST_F(LostOutput, AFileSizeLimitEndsTrainingSaved) {
  const std::string plain = scratch_ / "plain";
  const Args steps{"--steps", "6", "--set", "train.checkpoint_every=2", "--quiet"};
  ASSERT_EQ(run_program(train_smoke(data_, plain, steps)).status, 0);
  const auto whole = fs::file_size(plain + "/checkpoint/latest.safetensors");
  for (const uintmax_t most : {whole / 2, uintmax_t{700}}) {  // less than a checkpoint; less than the log
    SCOPED_TRACE(most);
    fs::remove_all(run_);
    const Outcome limited = Child(train_smoke(data_, run_, steps), {"prlimit", "--fsize=" + std::to_string(most)}).wait();
    EXPECT_EQ(limited.signal, 0) << limited.text();
    EXPECT_EQ(limited.status, 1) << limited.text();
    EXPECT_THAT(limited.err, testing::AllOf(HasSubstr("fairway: "), HasSubstr("File too large"))) << limited.text();
    Args again = steps;
    if (fs::exists(run_ + "/metrics.jsonl")) again.emplace_back("--resume");
    const Outcome resumed = run_program(train_smoke(data_, run_, again));
    EXPECT_EQ(resumed.status, 0) << resumed.text();
    expect_same(bytes_of_run(run_), bytes_of_run(plain), "after a limit");
  }
}

TEST_F(LostOutput, OfRecordsBeforeTheCheckpointIsToldAtResume) {
  ASSERT_EQ(run_program(train_smoke(data_, run_, {"--steps", "4"})).status, 0);
  const std::string metrics = run_ + "/metrics.jsonl", good = contents(metrics);
  const size_t second = good.find('\n') + 1;
  for (const std::string& left : {good.substr(0, second), good.substr(second), std::string()}) {
    put_file(metrics, left);
    const Outcome outcome = run_program(train_smoke(data_, run_, {"--steps", "6", "--resume"}));
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, HasSubstr("metrics.jsonl: its records end after step"));
    EXPECT_THAT(outcome.err, HasSubstr("the checkpoint was made after step 4"));
    EXPECT_EQ(contents(metrics), left) << "what is left was changed";
  }
  put_file(metrics, good);
  EXPECT_EQ(run_program(train_smoke(data_, run_, {"--steps", "6", "--resume"})).status, 0);
}

// The limit lets the first records through and no more: what they lack is in the checkpoint until they can be written.
TEST_F(LostOutput, OfALineAloneIsMadeUpForAtResume) {
  const Args steps{"--steps", "6"}, resumed{"--steps", "6", "--resume"};
  const std::string whole = scratch_ / "whole";
  ASSERT_EQ(run_program(train_smoke(data_, whole, steps)).status, 0);
  fs::create_directories(run_);
  fs::create_symlink("/dev/full", run_ + "/metrics.jsonl");
  EXPECT_EQ(run_program(train_smoke(data_, run_, steps)).status, 1);
  fs::remove(run_ + "/metrics.jsonl");
  EXPECT_EQ(run_program(train_smoke(data_, run_, resumed)).status, 0);
  expect_same(bytes_of_run(run_), bytes_of_run(whole), "resumed");
}

// Records go nowhere, and under a limit of 16 KiB no checkpoint fits.
TEST_F(LostOutput, ADiskThatTakesNothingIsNamedForBoth) {
  fs::create_directories(run_);
  fs::create_symlink("/dev/full", run_ + "/metrics.jsonl");
  const Args limited{"sh", "-c", "ulimit -f 32; exec \"$@\"", "sh"};
  const Outcome outcome = Child(train_smoke(data_, run_, {"--steps", "4"}), limited).wait();
  EXPECT_EQ(outcome.status, 1) << outcome.text();
  EXPECT_THAT(outcome.err, HasSubstr("metrics.jsonl: cannot be written"));
  EXPECT_THAT(outcome.err, HasSubstr("a checkpoint cannot be written either"));
}

}  // namespace
