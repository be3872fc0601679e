// Rows of a table by index, read and added to (spec §6.10). Each task of a sum owns some rows and columns of the table and
// walks the tokens in order, so every element is a sum in one order whoever computes it.
#pragma once

#include "base/error.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

inline constexpr int64_t kScatterColumns = 64;  // four cache lines of a row per visit

inline constexpr int64_t kScatterParts = 4;  // of the table's rows

template <class RowOf>
void gather(Queue& queue, const Tensor& table, int64_t count, const Tensor& to, RowOf row_of) {
  const int64_t columns = table.dim(1);
  const RowKernels& kernel = kernels().rows;
  const float* from = table.as<float>();
  float* out = to.as<float>();
  for_rows(queue, count, 2 * columns, [&](RowRange range) {
    for (int64_t m = range.begin; m < range.end; ++m) kernel.copy(from + row_of(m) * columns, out + m * columns, columns);
  });
}

template <class RowOf>
void scatter(Queue& queue, const float* g, int64_t count, const Tensor& dtable, RowOf row_of) {
  const int64_t rows = dtable.dim(0), columns = dtable.dim(1), blocks = (columns + kScatterColumns - 1) / kScatterColumns;
  const RowKernels& kernel = kernels().rows;
  float* to = dtable.as<float>();
  for_tasks(queue, blocks * kScatterParts, (count + rows) * columns, [&](int64_t task) {
    const int64_t first = task / kScatterParts * kScatterColumns, part = task % kScatterParts;
    const int64_t width = std::min(kScatterColumns, columns - first);
    const int64_t begin = rows * part / kScatterParts, end = rows * (part + 1) / kScatterParts;
    for (int64_t row = begin; row < end && !dtable.accumulate; ++row) std::fill_n(to + row * columns + first, width, 0.0f);
    for (int64_t m = 0; m < count; ++m) {
      const int64_t row = row_of(m);
      if (row >= begin && row < end) kernel.add(g + m * columns + first, to + row * columns + first, width);
    }
  });
}

inline void check_tokens(const Tensor& tokens, int64_t rows) {
  const int32_t* token = tokens.as<int32_t>();
  bool inside = true;
  for (int64_t m = 0; m < tokens.numel(); ++m) inside &= token[m] >= 0 && token[m] < rows;
  FAIRWAY_ASSERT(inside, "token outside of the table");
}

}  // namespace fairway::cpu
