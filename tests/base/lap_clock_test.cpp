#include "base/lap_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairway {
namespace {

TEST(LapClock, StagesAddUpInTheOrderOfTheirFirstLap) {
  const Stopwatch whole;
  LapClock clock;
  EXPECT_TRUE(clock.stages().empty());
  double sum = 0;
  for (const char* stage : {"reading", "counting", "reading"}) clock.lap(stage);
  std::vector<std::string> names;
  for (const auto& [name, seconds] : clock.stages()) {
    names.push_back(name);
    EXPECT_GE(seconds, 0);
    sum += seconds;
  }
  EXPECT_THAT(names, testing::ElementsAre("reading", "counting"));
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, whole.seconds());
}

}  // namespace
}  // namespace fairway
