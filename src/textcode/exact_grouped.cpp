#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "ops/cpu/isa/kernels.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {

const GroupedKernels* grouped_kernels() {
  const bool vnni = std::string_view(cpu::kernels().name) == "avx512" && __builtin_cpu_supports("avx512vnni");
  return vnni ? &grouped_vnni : nullptr;
}

namespace {

int64_t groups_of(int64_t rows) { return (rows + kGroupRows - 1) / kGroupRows; }
int64_t padded(int64_t cols) { return (cols + cpu::kTileCols - 1) / cpu::kTileCols * cpu::kTileCols; }

}  // namespace

DigitRows::DigitRows(int64_t rows, int64_t most_cols)
    : stride_(padded(most_cols) / 4 * kQuadBytes),
      vectors_(static_cast<size_t>(rows), cpu::DigitVector(most_cols)),
      digits_(static_cast<size_t>(groups_of(rows) * stride_)),
      sums_(static_cast<size_t>(groups_of(rows) * kGroupRows * kPlaces)),
      units_(static_cast<size_t>(groups_of(rows) * kGroupRows)) {}

void DigitRows::assign(int64_t row, const float* x, int64_t cols, const float* factor) {
  FAIRWAY_ASSERT(static_cast<size_t>(row) < vectors_.size(), "more rows than there is room for");
  cpu::DigitVector& own = vectors_[static_cast<size_t>(row)];
  own.assign(x, cols, factor);
  if (grouped_kernels() == nullptr) return;
  int8_t* to = digits_.data() + row / kGroupRows * stride_ + row % kGroupRows * kPlaces * 4;
  const int8_t* from[kPlaces] = {own.digits(0), own.digits(1), own.digits(2)};
  for (int64_t quad = 0; quad < padded(cols) / 4; ++quad, to += kQuadBytes)
    for (int place = 0; place < kPlaces; ++place) std::memcpy(to + 4 * place, from[place] + 4 * quad, 4);
  std::copy(own.sums(), own.sums() + kPlaces, sums_.begin() + row * kPlaces);
  units_[static_cast<size_t>(row)] = own.unit();
}

DigitGroup DigitRows::group(int64_t index, int64_t rows, float** y) const {
  const int64_t first = index * kGroupRows;
  return {.rows = static_cast<int>(std::min<int64_t>(kGroupRows, rows - first)),
          .digits = digits_.data() + index * stride_,
          .sums = sums_.data() + first * kPlaces,
          .units = units_.data() + first,
          .y = y};
}

}  // namespace fairway::textcode
