// `bench ranks`: ranks that the program starts share a step and leave one rank's weights; what cannot be shared is refused.
#include <gmock/gmock.h>

#include "app/world.h"

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

Args ranks(const Args& more) {
  Args args{"bench", "ranks", "--recipe", "smoke", "--steps", "3", "--threads", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(BenchRanks, AnyNumberLeavesTheSameWeights) {
  const json result = run_json(ranks({"--world", "4", "--counts", "1,2,4", "--gpu", "h200"}));
  ASSERT_EQ(result["shared"].size(), 3U) << result.dump();
  EXPECT_EQ(result["tokens"], 4 * 128);
  for (const json& line : result["shared"]) {
    EXPECT_EQ(line["weights"], result["shared"][0]["weights"]) << line.dump();
    EXPECT_EQ(line["loss"], result["shared"][0]["loss"]) << line.dump();
    EXPECT_GT(line["median_ms"], 0);
    EXPECT_EQ(line["bytes_sent"] == 0, line["ranks"] == 1) << line.dump();
  }
  EXPECT_GT(result["shared"][2]["update_sent"], result["shared"][1]["update_sent"]);  // (n−1)/n of the gradients
  EXPECT_EQ(result["predicted"]["gpus"], 4);
  EXPECT_GT(result["predicted"]["step_ms"], result["predicted"]["passes_ms"]);
}

TEST(BenchRanks, OnTheCpuNothingIsPredicted) {
  const Outcome told = run_program(ranks({"--world", "2", "--counts", "1"}));
  EXPECT_EQ(told.status, 0) << told.text();
  EXPECT_THAT(told.out, AllOf(HasSubstr("the same weights after 3 steps"), HasSubstr("no prediction"), HasSubstr("--gpu")));
}

TEST(BenchRanks, RefusesWhatCannotBeShared) {
  const auto refused = [](const Args& more, const std::string& place, const std::string& expected) {
    const Outcome told = run_program(ranks(more));
    EXPECT_EQ(told.status, 2) << told.text();
    EXPECT_THAT(told.err, AllOf(HasSubstr(place), HasSubstr(expected)));
  };
  refused({"--counts", "1,3"}, "3 processes", "start 1, 2, 4, 8 of them");
  refused({"--tokens", "65"}, "--tokens 65", "data.seq_len");
  refused({"--gpu", "b200"}, "b200", "h200");
  refused({"--steps", "2"}, "--steps", "3");
  refused({"--told-to", "1"}, "--told-to", "started");
}

}  // namespace
