// Loops of a team: every item once, results visible to the caller, exceptions, and teams larger than the machine.
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace fairway {
namespace {

class Team : public testing::TestWithParam<int> {};

TEST_P(Team, EveryItemRunsOnceAndIsSeen) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t count : {0, 1, 2, 3, 17, 1000}) {
    std::vector<int> calls(static_cast<size_t>(count), 0);
    pool.parallel_for(count, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(calls[static_cast<size_t>(i)], 1) << "item " << i << " of " << count;
  }
}

TEST_P(Team, ASlotIsOneCallsAtATime) {
  ThreadPool pool(GetParam());
  for (const int64_t slots : {1, 3, 8}) {
    std::vector<std::atomic<int>> busy(static_cast<size_t>(slots));
    std::vector<int> calls(1000, 0);
    std::atomic<int> shared{0};
    pool.parallel_for_slots(slots, 1000, [&](int64_t slot, int64_t i) {
      shared += busy.at(static_cast<size_t>(slot))++ == 0 ? 0 : 1;
      ++calls[static_cast<size_t>(i)];
      --busy[static_cast<size_t>(slot)];
    });
    EXPECT_EQ(shared, 0);
    for (size_t i = 0; i < calls.size(); ++i) ASSERT_EQ(calls[i], 1) << "item " << i;
  }
}

// Loops of other lengths and bodies follow at once, so that late workers meet a loop that is not theirs any more.
TEST_P(Team, ShortLoopsFollowEachOther) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(8, 0);
  int64_t expected = 0;
  for (int64_t loop = 0; loop < 4000; ++loop) {
    const int64_t count = 2 + loop % 7;
    if (loop % 2 == 0) {
      pool.parallel_for(count, [&](int64_t i) { values[static_cast<size_t>(i)] += loop; });
    } else {
      pool.parallel_for(count, [&values](int64_t i) { values[static_cast<size_t>(i)] -= 1; });
    }
    expected += loop % 2 == 0 ? loop * count : -count;
  }
  int64_t sum = 0;
  for (int64_t value : values) sum += value;
  EXPECT_EQ(sum, expected);
}

TEST_P(Team, ThrowsTheBodysExceptionAndGoesOn) {
  ThreadPool pool(GetParam());
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> calls{0};
    EXPECT_THROW(pool.parallel_for(100,
                                   [&](int64_t i) {
                                     ++calls;
                                     if (i == 5) throw std::runtime_error("item 5");
                                   }),
                 std::runtime_error);
    EXPECT_GE(calls, 1);
    EXPECT_LE(calls, 100);
    std::atomic<int64_t> sum{0};
    pool.parallel_for(100, [&](int64_t i) { sum += i; });
    EXPECT_EQ(sum, 4950);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Team, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace fairway
