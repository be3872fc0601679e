#include "textcode/exact_products.h"

#include <algorithm>

#include "base/error.h"
#include "textcode/exact_kernels.h"

namespace fairway::textcode {
namespace {

// Rows of tiles [tile, tile + 1) for every row of x while they are in the nearest cache.
void multiply_tile(const PackedMatrix& w, const Tensor& x, const std::vector<cpu::DigitVector>& digits, int64_t tile,
                   const Tensor& y) {
  const int64_t begin = tile * cpu::kTileRows, end = std::min(w.rows.rows, begin + cpu::kTileRows);
  for (int64_t m = 0; m < x.rows(); ++m) {
    float* out = y.as<float>() + m * w.rows.rows;
    cpu::multiply(w.rows, digits[static_cast<size_t>(m)], {tile, tile + 1}, out);
    for (int64_t r = 0; r < w.rank; ++r) {
      const float inner = exact_kernels().dot(w.b + r * w.rows.cols, x.as<float>() + m * w.rows.cols, w.rows.cols);
      for (int64_t i = begin; i < end; ++i) out[i] += w.a[i * w.rank + r] * inner;
    }
  }
}

}  // namespace

void multiply_rows(const Tensor& x, const Matrix& w, std::vector<cpu::DigitVector>& digits, ThreadPool& pool, const Tensor& y) {
  const int64_t rows = x.rows(), cols = x.cols();
  if (w.packed != nullptr) {
    FAIRWAY_ASSERT(static_cast<size_t>(rows) <= digits.size(), "more rows than there is room for");
    pool.parallel_for(
        rows, [&](int64_t m) { digits[static_cast<size_t>(m)].assign(x.as<float>() + m * cols, cols, w.packed->columns); });
    pool.parallel_for(w.packed->rows.row_tiles(), [&](int64_t tile) { multiply_tile(*w.packed, x, digits, tile, y); });
    return;
  }
  const int64_t outputs = w.floats.dim(0);
  pool.parallel_for(outputs, [&](int64_t n) {
    for (int64_t m = 0; m < rows; ++m)
      y.as<float>()[m * outputs + n] = exact_kernels().dot(x.as<float>() + m * cols, w.floats.as<float>() + n * cols, cols);
  });
}

void unpack_row(const PackedMatrix& table, int64_t row, float* out) {
  FAIRWAY_ASSERT(row >= 0 && row < table.rows.rows, "a token outside of the vocabulary");
  const int64_t cols = table.rows.cols;
  cpu::unpack_row(table.rows, row, out);
  for (int64_t j = 0; j < cols && table.columns != nullptr; ++j) out[j] *= table.columns[j];
  for (int64_t r = 0; r < table.rank; ++r)
    for (int64_t j = 0; j < cols; ++j) out[j] += table.a[row * table.rank + r] * table.b[r * cols + j];
}

void projected_embed(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call, ThreadPool& pool) {
  const auto* tokens = call.in.tokens.as<int32_t>();
  const int64_t rows = call.in.table.dim(0), size = call.in.table.dim(1), columns = call.in.proj.dim(0);
  const float *table = call.in.table.as<float>(), *proj = call.in.proj.as<float>(), scale = *call.in.scale.as<float>();
  pool.parallel_for(call.in.tokens.numel(), [&](int64_t m) {
    int64_t row = tokens[m];
    if (op.index == ProjectedEmbed::Index::bigram)
      row = m % op.row_length == 0 ? rows - 1 : bigram_row(tokens[m], tokens[m - 1], rows);
    FAIRWAY_ASSERT(row >= 0 && row < rows, "a token outside of its table");
    float* y = call.out.y.as<float>() + m * columns;
    for (int64_t n = 0; n < columns; ++n) y[n] = scale * exact_kernels().dot(table + row * size, proj + n * size, size);
  });
}

void leaky_squares(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float slope = x[i] > 0 ? 2 * x[i] : 0.5F * x[i];
    x[i] = 0.5F * slope * x[i];
  }
}

void add_residual(const float* x, const float* scale, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = (x != nullptr ? x[i] : 0.0F) + scale[i] * y[i];
}

}  // namespace fairway::textcode
