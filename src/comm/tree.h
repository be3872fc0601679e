// The one order in which W gradients are added, whatever the number of processes: neighbours first, then neighbours of those,
// ((g0+g1)+(g2+g3))+…, as a binary counter carries. A process that holds 2^k neighbours holds a whole branch of the tree.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace fairway {

// After leaf i was put on the stack the two topmost sums are added this many times.
inline int carries_after(int64_t leaf) { return std::countr_one(static_cast<uint64_t>(leaf)); }

// Sums on the stack while `leaves` leaves are added, the newest included.
inline int tree_depth(int64_t leaves) {
  int most = 0;
  for (int64_t i = 0; i < leaves; ++i) most = std::max(most, std::popcount(static_cast<uint64_t>(i)) + 1);
  return most;
}

// All additions of a tree over `leaves` parts in order: part `first` += part `second`. The sum ends in part 0.
inline std::vector<std::pair<int64_t, int64_t>> tree_additions(int64_t leaves) {
  std::vector<std::pair<int64_t, int64_t>> out;
  std::vector<int64_t> stack;
  const auto carry = [&] {
    out.emplace_back(stack[stack.size() - 2], stack.back());
    stack.pop_back();
  };
  for (int64_t i = 0; i < leaves; ++i) {
    stack.push_back(i);
    for (int k = carries_after(i); k > 0; --k) carry();
  }
  while (stack.size() > 1) carry();
  return out;
}

}  // namespace fairway
