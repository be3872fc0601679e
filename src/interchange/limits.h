// How much a file of somebody else's may make this program take. A published checkpoint has 120 MB, its artifact 16 MB.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fairway::interchange {

inline constexpr uint64_t kMostFileBytes = uint64_t{4} << 30;
inline constexpr uint64_t kMostPickleBytes = 4 << 20;  // about 40,000 tensors
inline constexpr int kMostPickleDepth = 64;
inline constexpr size_t kMostAxes = 4;

// What a compressed stream or the shapes that a container claims may come to. Published artifacts grow to less than four times
// their size.
constexpr uint64_t most_decompressed(uint64_t compressed) {
  return std::min(kMostFileBytes, (uint64_t{64} << 20) + 64 * std::min(compressed, kMostFileBytes));
}

}  // namespace fairway::interchange
