// Bytes that the calling thread holds beyond what it held at the last reset, counted at malloc itself so that libraries count
// too. A thread that goes beyond kHardStop aborts at once, before the machine is out of memory.
#pragma once

#include <cstdint>

inline constexpr int64_t kHardStop = int64_t{2} << 30;
inline constexpr int64_t kMostBeyondClaim = 64'000'000;  // of what an input may take beyond FuzzNote::claim

void reset_allocations();
int64_t most_allocated();  // the peak since then
