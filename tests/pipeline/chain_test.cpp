// One run from recipe to report: the order of its phases, what is skipped, and that a kill at any call loses nothing.
#include <gmock/gmock.h>

#include "base/error.h"
#include "base/lock_holder.h"
#include "pipeline/fake_program.h"
#include "pipeline/phases.h"

namespace fairway::pipeline {
namespace {

using Chain = PipelineTest;
using testing::HasSubstr;

TEST_F(Chain, GoesThroughEveryPhaseInOrder) {
  const ChainResult result = run_chain(request(), program_.stages(), quiet_);
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(program_.calls, testing::ElementsAre("train", "pack", "score", "score", "audit", "samples", "report"));
  for (const char* field :
       {"steps", "step_ms", "train_seconds", "tokens_per_second", "val_loss", "val_bpb", "artifact_bytes", "score_bpb"})
    EXPECT_TRUE(result.summary.contains(field)) << field;
  for (const char* field : {"startup", "train", "quantize", "pack", "score"})
    EXPECT_TRUE(result.summary["seconds"].contains(field)) << field;
  EXPECT_EQ(result.summary["seconds"]["quantize"], 1.0);
  EXPECT_EQ(result.summary["seconds"]["pack"], 2.0);
  EXPECT_THAT(contents(folder_ / "run" / "train.log"), HasSubstr("final_int6_sliding_window_exact val_loss:1.50000000"));
  EXPECT_THAT(contents(folder_ / "run" / "train.log"), HasSubstr("Total submission size int6+rans: 12 bytes"));
}

TEST_F(Chain, AnArtifactIsScoredAsTheRecipeSays) {
  ChainRequest chain = request();
  chain.overrides = {"score.slot.steps=7"};
  run_chain(chain, program_.stages(), quiet_);
  ASSERT_EQ(program_.scores.size(), 2U);
  const ScoreRequest& score = program_.scores[1];
  EXPECT_EQ(score.mode, ScoringMode{ScoreMode::sliding});
  EXPECT_EQ(score.stride, 16);
  EXPECT_EQ(score.context, 64);
  EXPECT_THAT(score.overrides, testing::ElementsAre("score.slot.steps=7"));
}

TEST_F(Chain, AFinishedRunIsRefusedWithoutResumeAndNotDoneTwiceWithIt) {
  run_chain(request(), program_.stages(), quiet_);
  EXPECT_THROW(run_chain(request(), program_.stages(), quiet_), InputError);
  const size_t calls = program_.calls.size();
  ChainRequest again = request();
  again.resume = true;
  const ChainResult result = run_chain(again, program_.stages(), quiet_);
  fs::rename(folder_ / "run", folder_ / "moved");
  again.out = (folder_ / "moved").string();
  run_chain(again, program_.stages(), quiet_);
  EXPECT_EQ(program_.calls.size(), calls);
  EXPECT_TRUE(result.summary.contains("score_bpb"));
}

TEST_F(Chain, AKillAtAnyCallLosesNothingThatWasDone) {
  ChainRequest chain = request();
  run_chain(chain, program_.stages(), quiet_);
  const size_t phases = program_.calls.size();
  const std::string log = contents(folder_ / "run" / "train.log");
  for (size_t at = 0; at < phases; ++at) {
    for (const bool after : {false, true}) {
      fs::remove_all(folder_ / "run");
      FakeProgram program;
      program.kill_at = static_cast<int>(at);
      program.after_writing = after;
      chain.resume = true;
      EXPECT_THROW(run_chain(chain, program.stages(), quiet_), Killed);
      const ChainResult result = run_chain(chain, program.stages(), quiet_);
      EXPECT_EQ(result.status, 0);
      EXPECT_EQ(program.calls.size(), phases + 1) << "killed at call " << at;  // only the killed one is done twice
      EXPECT_EQ(contents(folder_ / "run" / "train.log"), log);
      EXPECT_EQ(result.summary["score_bpb"], 0.9);
    }
  }
}

TEST_F(Chain, AnInterruptedTrainingEndsWith130AndGoesOn) {
  program_.interrupt_at = 0;
  ChainRequest chain = request();
  EXPECT_EQ(run_chain(chain, program_.stages(), quiet_).status, kInterrupted);
  EXPECT_EQ(program_.calls.size(), 1U);
  chain.resume = true;
  EXPECT_EQ(run_chain(chain, program_.stages(), quiet_).status, 0);
  EXPECT_EQ(program_.count("train"), 2);
}

TEST_F(Chain, WhatDependsOnChangedFilesIsDoneAgain) {
  ChainRequest chain = request();
  run_chain(chain, program_.stages(), quiet_);
  chain.resume = true;
  struct Case {
    const char* change;
    std::vector<std::string> redone;
  };
  const fs::path run = folder_ / "run";
  for (const Case& c : {Case{"report.html", {"report"}}, Case{"receipt.json", {"score", "audit"}}, Case{"model.fwy", {"pack"}},
                        Case{"samples.json", {"samples"}}}) {
    program_.calls.clear();
    fs::remove(run / c.change);
    run_chain(chain, program_.stages(), quiet_);
    EXPECT_EQ(program_.calls, c.redone) << c.change;
  }
  program_.calls.clear();
  std::ofstream(run / "averaged.safetensors") << "other weights";
  run_chain(chain, program_.stages(), quiet_);
  EXPECT_EQ(program_.count("train"), 1);
  program_.calls.clear();
  chain.program = "another program";
  run_chain(chain, program_.stages(), quiet_);
  EXPECT_EQ(program_.count("train"), 0);
  EXPECT_EQ(program_.count("score"), 2);
  EXPECT_EQ(program_.count("audit"), 1);
}

TEST_F(Chain, AnIllegalScoreIsReportedAndEndsWithStatusOne) {
  program_.legal = false;
  const ChainResult result = run_chain(request(), program_.stages(), quiet_);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.summary["legal"], false);
  EXPECT_EQ(program_.count("report"), 1);
}

TEST_F(Chain, OneProcessHoldsAFolder) {
  fs::create_directories(folder_ / "run");
  const LockHolder other(folder_ / "run");
  ASSERT_TRUE(other.ready());
  EXPECT_THROW(run_chain(request(), program_.stages(), quiet_), InputError);
}

TEST_F(Chain, OtherProcessesJoinWhatAllShareWhenTheFirstSaysSo) {
  ChainRequest helper = request();
  helper.helper_rank = true;
  int asked = 0;
  helper.agree = [&](bool) { return ++asked == 2; };  // pack is done before
  EXPECT_EQ(run_chain(helper, program_.stages(), quiet_).status, 0);
  EXPECT_THAT(program_.calls, testing::ElementsAre("train", "score", "score"));
  EXPECT_EQ(asked, 7);
  EXPECT_FALSE(fs::exists(folder_ / "run" / "run.json"));
}

TEST_F(Chain, AForeignFileIsNoLedger) {
  fs::create_directories(folder_ / "run");
  std::ofstream(folder_ / "run" / "run.json") << "[1, 2";
  EXPECT_THROW(run_chain(request(), program_.stages(), quiet_), InputError);
  EXPECT_TRUE(program_.calls.empty());
}

TEST_F(Chain, TellsTheTimeLeftAsFarAsItIsKnown) {
  std::vector<std::string> said;
  ChainRequest chain = request();
  chain.overrides = {"train.steps=0", "train.seconds=90"};
  run_chain(chain, program_.stages(), [&](const std::string& line) { said.push_back(line); });
  EXPECT_THAT(said.front(), HasSubstr("more than 1m30s left"));
}

}  // namespace
}  // namespace fairway::pipeline
