// Several seeds one after another: their folders, statistics, resuming, and what is refused.
#include "pipeline/seeds.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "pipeline/fake_program.h"

namespace fairway::pipeline {
namespace {

using Seeds = PipelineTest;

double trained_loss(const Recipe& recipe) { return 2.0 + 0.01 * static_cast<double>(recipe.train.seed); }

TEST(SeedList, IsWholeNumbersAndEachOnce) {
  EXPECT_EQ(parse_seeds("1,2,3"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(parse_seeds("1337"), (std::vector<int64_t>{1337}));
  for (const char* text : {"", "1,", ",1", "1,,2", "1,x", "-1", "1.5", "1,2,1", "99999999999999999"})
    EXPECT_THROW(parse_seeds(text), InputError) << text;
}

TEST_F(Seeds, EachHasAFolderAndTheEndHasTheStatistics) {
  program_.loss = trained_loss;
  const SeedsResult result = run_seeds({request(), {1, 2, 3}, {}}, program_.stages(), quiet_);
  EXPECT_EQ(result.status, 0);
  EXPECT_NEAR(result.result["mean"]["val_bpb"].get<double>(), 2.02, 1e-12);
  EXPECT_NEAR(result.result["sd"]["val_bpb"].get<double>(), 0.01, 1e-12);
  EXPECT_EQ(result.result["sd"]["score_bpb"], 0.0);
  EXPECT_EQ(program_.count("train"), 3);
  for (const char* seed : {"seed1", "seed2", "seed3"}) EXPECT_TRUE(fs::exists(folder_ / "run" / seed / "report.html")) << seed;
}

TEST_F(Seeds, GoOnAfterAKillInAnyOfThem) {
  program_.loss = trained_loss;
  const SeedsRequest whole{request(), {1, 2, 3}, {}};
  const std::string want = run_seeds(whole, program_.stages(), quiet_).text;
  const size_t calls = program_.calls.size();
  for (size_t at = 0; at < calls; at += 3) {
    fs::remove_all(folder_ / "run");
    FakeProgram program;
    program.loss = trained_loss;
    program.kill_at = static_cast<int>(at);
    SeedsRequest again = whole;
    EXPECT_THROW(run_seeds(again, program.stages(), quiet_), Killed);
    again.chain.resume = true;
    EXPECT_EQ(run_seeds(again, program.stages(), quiet_).text, want);
    EXPECT_EQ(program.calls.size(), calls + 1);
  }
}

TEST_F(Seeds, AreComparedWithAPublishedSystem) {
  const SeedsResult result = run_seeds({request(), {1, 2, 3}, {"pr1019"}}, program_.stages(), quiet_);
  EXPECT_LT(result.result["comparison"]["delta_bpb"].get<double>(), -0.2);
  EXPECT_THAT(result.text, testing::HasSubstr("record: yes"));
}

// The runs are made, so what they do not compare with is told and ends nothing.
TEST_F(Seeds, AnotherTextThanThePublishedOneMakesNoRecord) {
  program_.scored_bytes = 128;
  const SeedsResult result = run_seeds({request(), {1, 2, 3}, {"pr1019"}}, program_.stages(), quiet_);
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(result.result["comparison"]["record"].get<bool>());
  EXPECT_THAT(result.result["comparison"]["refused"].get<std::string>(), testing::HasSubstr("official validation text"));
  EXPECT_THAT(result.text, testing::Not(testing::HasSubstr("record: yes")));
}

TEST_F(Seeds, ABaselineThatIsNotThereIsRefusedBeforeTraining) {
  EXPECT_THROW(run_seeds({request(), {1, 2}, {"nowhere"}}, program_.stages(), quiet_), InputError);
  EXPECT_TRUE(program_.calls.empty());
}

}  // namespace
}  // namespace fairway::pipeline
