#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "ops/cpu/isa/kernels.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {

const GroupedKernels& grouped_kernels() {
#if defined(__x86_64__)
  const std::string_view isa = cpu::kernels().name;
  if (isa == "avx512") return __builtin_cpu_supports("avx512vnni") ? grouped_vnni : grouped_avx512;
  if (isa == "avx2") return grouped_avx2;
#endif
  return grouped_generic;  // NEON on Arm
}

namespace {

int64_t groups_of(int64_t rows) { return (rows + kGroupRows - 1) / kGroupRows; }
int64_t padded(int64_t cols) { return (cols + cpu::kTileCols - 1) / cpu::kTileCols * cpu::kTileCols; }

}  // namespace

DigitRows::DigitRows(int64_t rows, int64_t most_cols)
    : stride_(padded(most_cols) / 4 * kMostQuadBytes),
      vectors_(static_cast<size_t>(rows), cpu::DigitVector(most_cols)),
      digits_(static_cast<size_t>(groups_of(rows) * stride_)),
      sums_(static_cast<size_t>(groups_of(rows) * kGroupRows * kPlaces)),
      units_(static_cast<size_t>(groups_of(rows) * kGroupRows)) {}

void DigitRows::assign(int64_t row, const float* x, int64_t cols, const float* factor) {
  FAIRWAY_ASSERT(static_cast<size_t>(row) < vectors_.size(), "more rows than there is room for");
  cpu::DigitVector& own = vectors_[static_cast<size_t>(row)];
  own.assign(x, cols, factor);
  const GroupedKernels& kernels = grouped_kernels();
  if (cols > kernels.most_cols) return;
  const int8_t* from[kPlaces] = {own.digits(0), own.digits(1), own.digits(2)};
  kernels.arrange(from, padded(cols), static_cast<int>(row % kGroupRows), digits_.data() + row / kGroupRows * stride_);
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
