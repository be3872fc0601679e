// Successive halving: the plan of times, who goes on, resuming, trials that fail.
#include "pipeline/sweep.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/error.h"
#include "pipeline/fake_program.h"
#include "pipeline/halving.h"

namespace fairway::pipeline {
namespace {

using Sweeps = PipelineTest;
using testing::HasSubstr;

double best_at_three(const Recipe& recipe) { return 2.0 + std::abs(recipe.optim.matrix.lr - 0.03); }

TEST(Axis, SplitsAtCommasOutsideOfBracketsAndQuotes) {
  EXPECT_EQ(parse_axis("a.b=1,2,3").values, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(parse_axis("layers=[1,2],[3]").values, (std::vector<std::string>{"[1,2]", "[3]"}));
  EXPECT_EQ(parse_axis("x=\"a,b\",c").values, (std::vector<std::string>{"\"a,b\"", "c"}));
  for (const char* text : {"", "key", "=1", "key=", "key=1,,2", "key=1,1"}) EXPECT_THROW(parse_axis(text), InputError) << text;
}

TEST(Grid, HasEveryCombination) {
  const auto trials = grid({{"a", {"1", "2"}}, {"b", {"x", "y", "z"}}});
  ASSERT_EQ(trials.size(), 6U);
  EXPECT_EQ(trials[0], (std::vector<std::string>{"a=1", "b=x"}));
  EXPECT_EQ(trials[5], (std::vector<std::string>{"a=2", "b=z"}));
}

TEST(Halving, EveryRungCostsTheSameAndTheLastHasTheWholeBudget) {
  const std::vector<Rung> plan = halving_plan(8, 2);
  ASSERT_EQ(plan.size(), 3U);
  for (const Rung& rung : plan) EXPECT_DOUBLE_EQ(rung.share * static_cast<double>(rung.trials), 2.0);
  EXPECT_EQ(plan.back().share, 1);
  EXPECT_EQ(halving_plan(1, 2).size(), 1U);
  EXPECT_EQ(halving_plan(2, 2).size(), 1U);
  EXPECT_EQ(halving_plan(9, 3)[0].share, 1.0 / 3);
  EXPECT_EQ(halving_plan(5, 2)[1].trials, 3U);
}

TEST(Halving, KeepsTheLowestAndNeverANan) {
  EXPECT_EQ(best_of({4, 7, 9}, {1.0, NAN, 0.5}, 2), (std::vector<size_t>{4, 9}));
  EXPECT_EQ(best_of({4, 7, 9}, {1.0, 1.0, 1.0}, 1), (std::vector<size_t>{4}));
}

TEST_F(Sweeps, FindTheBestAndMakeAWholeRunOfIt) {
  program_.loss = best_at_three;
  const SweepResult result = run_sweep({request(), {"optim.matrix.lr=0.01,0.02,0.03,0.04"}, 2}, program_.stages(), quiet_);
  EXPECT_EQ(result.result["best"]["set"][0], "optim.matrix.lr=0.03");
  EXPECT_TRUE(fs::exists(fs::path(result.result["best"]["path"].get<std::string>()) / "report.html"));
  EXPECT_EQ(program_.count("train"), 4 + 2);
  EXPECT_EQ(program_.count("pack"), 1);
  EXPECT_THAT(result.text, HasSubstr("best: trial 3"));
  EXPECT_FALSE(fs::exists(folder_ / "run" / "rung1" / "trial1" / "checkpoint"));
}

TEST_F(Sweeps, GiveEachRungItsShareOfTheBudget) {
  std::map<int64_t, int> steps;
  program_.loss = [&](const Recipe& recipe) {
    ++steps[recipe.train.steps];
    return best_at_three(recipe);
  };
  run_sweep({request(), {"optim.matrix.lr=0.01,0.02,0.03,0.04"}, 2}, program_.stages(), quiet_);  // smoke has 40 steps
  EXPECT_EQ(steps, (std::map<int64_t, int>{{20, 4}, {40, 2}}));
}

TEST_F(Sweeps, GoOnAfterAKill) {
  program_.loss = best_at_three;
  SweepRequest sweep{request(), {"optim.matrix.lr=0.01,0.02,0.03,0.04"}, 2};
  const std::string want = run_sweep(sweep, program_.stages(), quiet_).text;
  const size_t calls = program_.calls.size();
  for (size_t at = 1; at < calls; ++at) {
    fs::remove_all(folder_ / "run");
    FakeProgram program;
    program.loss = best_at_three;
    program.kill_at = static_cast<int>(at);
    sweep.chain.resume = false;
    EXPECT_THROW(run_sweep(sweep, program.stages(), quiet_), Killed);
    EXPECT_THROW(run_sweep(sweep, program.stages(), quiet_), InputError);  // without --resume
    sweep.chain.resume = true;
    EXPECT_EQ(run_sweep(sweep, program.stages(), quiet_).text, want);
    EXPECT_EQ(program.calls.size(), calls + 1);
  }
}

TEST_F(Sweeps, AKillBeforeTheFirstTrialBlocksNoFolder) {
  program_.loss = best_at_three;
  program_.kill_at = 0;
  EXPECT_THROW(run_sweep({request(), {"optim.matrix.lr=0.01,0.02"}, 2}, program_.stages(), quiet_), Killed);
  EXPECT_EQ(run_sweep({request(), {"optim.matrix.lr=0.03,0.04"}, 2}, program_.stages(), quiet_).status, 0);
  EXPECT_THROW(run_sweep({request(), {"optim.matrix.lr=0.03,0.04"}, 2}, program_.stages(), quiet_), InputError);
}

TEST_F(Sweeps, ATrialThatBlowsUpIsAResult) {
  program_.loss = [](const Recipe& recipe) {
    if (recipe.optim.matrix.lr > 0.015) throw WorkError("step 3: the loss is nan");
    return best_at_three(recipe);
  };
  const SweepResult result = run_sweep({request(), {"optim.matrix.lr=0.01,0.02,0.03"}, 2}, program_.stages(), quiet_);
  EXPECT_EQ(result.result["best"]["set"][0], "optim.matrix.lr=0.01");
  EXPECT_EQ(result.result["results"]["rung1/trial2"]["failed"], "step 3: the loss is nan");
  EXPECT_THROW(run_sweep({request(), {"optim.matrix.lr=0.02,0.03"}, 2}, program_.stages(), quiet_), InputError);
}

TEST_F(Sweeps, ABadKeyOrValueIsRefusedBeforeAnyTraining) {
  for (const char* axis : {"optim.matrix.lrr=1,2", "optim.matrix.lr=0.01,fast"})
    EXPECT_THROW(run_sweep({request(), {axis}, 2}, program_.stages(), quiet_), InputError) << axis;
  EXPECT_TRUE(program_.calls.empty());
}

TEST_F(Sweeps, AnotherSweepIsNotGoneOnWith) {
  SweepRequest sweep{request(), {"optim.matrix.lr=0.01,0.02"}, 2};
  run_sweep(sweep, program_.stages(), quiet_);
  sweep.chain.resume = true;
  sweep.axes = {"optim.matrix.lr=0.01,0.05"};
  EXPECT_THROW(run_sweep(sweep, program_.stages(), quiet_), InputError);
}

}  // namespace
}  // namespace fairway::pipeline
