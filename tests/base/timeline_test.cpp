// The timeline records only when asked to, and writes what trace viewers read.
#include "base/timeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace fairway {
namespace {

TEST(Timeline, RecordsRangesOnlyWhileAskedTo) {
  { const TimelineRange unseen("before"); }
  Timeline::record(true);
  const double origin = seconds_now();
  { const TimelineRange range("a \"quoted\" name"); }
  Timeline::active()->add("exchange", Lane::network, origin + 1, origin + 1.5);
  Timeline::active()->before_reading([&](Timeline& to) { to.add("kernel", Lane::device, origin + 2, origin + 2.25); });
  const std::string events = Timeline::active()->events(3, origin);
  const std::string none = Timeline::active()->events(4, origin);
  Timeline::record(false);
  EXPECT_EQ(Timeline::active(), nullptr);
  const auto trace = nlohmann::json::parse(Timeline::trace({events, none}));
  std::map<std::string, nlohmann::json> ranges;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ranges[event["name"].get<std::string>()] = event;
  }
  ASSERT_EQ(ranges.size(), 3U) << "each range once, none from before";
  EXPECT_EQ(ranges["exchange"]["pid"], 3);
  EXPECT_EQ(ranges["exchange"]["tid"], static_cast<int>(Lane::network));
  EXPECT_NEAR(ranges["exchange"]["ts"].get<double>(), 1e6, 1);
  EXPECT_NEAR(ranges["exchange"]["dur"].get<double>(), 5e5, 1);
  EXPECT_EQ(ranges["kernel"]["tid"], static_cast<int>(Lane::device));
  EXPECT_GE(ranges["a \"quoted\" name"]["ts"].get<double>(), 0);
}

}  // namespace
}  // namespace fairway
