// Which window scores which target (scoring spec §2.2): windows of L inputs start every S; the first scores all its targets,
// a later one those that no window before it has reached. Every target 1 … T once, for any T, L >= S >= 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace fairway {

struct ScoreWindow {
  int64_t start = 0;           // first input
  int64_t first = 0, end = 0;  // targets [first, end)
  int64_t count() const { return end - first; }
  int64_t position() const { return first - 1 - start; }  // row of the window that predicts the first target
};

class WindowPlan {
 public:
  WindowPlan(int64_t targets, int64_t context, int64_t stride) : targets_(targets), context_(context), stride_(stride) {
    FAIRWAY_ASSERT(targets >= 0 && stride >= 1 && context >= stride, "windows need context >= stride >= 1");
  }
  int64_t count() const {
    if (targets_ == 0) return 0;
    return targets_ <= context_ ? 1 : (targets_ - context_ + stride_ - 1) / stride_ + 1;
  }
  ScoreWindow at(int64_t k) const {
    const int64_t start = k * stride_, reached = k == 0 ? 0 : start - stride_ + context_;
    return {start, reached + 1, std::min(start + context_, targets_) + 1};
  }

 private:
  int64_t targets_, context_, stride_;
};

// Windows [begin, end) that one of several ranks scores: neighbours, as even as can be, every window of exactly one rank
// (scoring spec §2.1, §2.9). Contexts reach into the shares before it; scored targets do not.
struct WindowShare {
  int64_t begin = 0, end = 0;
};
constexpr WindowShare share_of_windows(int64_t windows, int64_t rank, int64_t ranks) {
  return {windows * rank / ranks, windows * (rank + 1) / ranks};
}

}  // namespace fairway
