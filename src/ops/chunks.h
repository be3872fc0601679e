// Reductions over rows go over a fixed number of chunks, summed in order: the bits do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairway {

inline constexpr int64_t kRowChunks = 32;

struct RowRange {
  int64_t begin, end;
};
inline RowRange row_chunk(int64_t rows, int64_t chunk) { return {rows * chunk / kRowChunks, rows * (chunk + 1) / kRowChunks}; }

// Bytes for one partial sum per chunk and column, kept in float or double.
inline size_t partials_bytes(int64_t columns) { return static_cast<size_t>(kRowChunks * columns) * sizeof(double); }

}  // namespace fairway
