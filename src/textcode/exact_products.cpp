#include "textcode/exact_products.h"

#include <algorithm>

#include "base/error.h"
#include "textcode/exact_kernels.h"

namespace fairway::textcode {
namespace {

// The outputs [begin, end) of row m get W's low-rank correction.
void add_correction(const PackedMatrix& w, const Tensor& x, int64_t m, cpu::TileRange outputs, float* y) {
  for (int64_t r = 0; r < w.rank; ++r) {
    const float inner = exact_kernels().dot(w.b + r * w.rows.cols, x.as<float>() + m * w.rows.cols, w.rows.cols);
    for (int64_t i = outputs.begin; i < outputs.end; ++i) y[i] += w.a[i * w.rank + r] * inner;
  }
}

// One row of tiles for every row of x while it is in the nearest cache.
void multiply_tile(const PackedMatrix& w, const Tensor& x, ProductScratch& scratch, int64_t slot, int64_t tile,
                   const Tensor& y) {
  const int64_t outputs = w.rows.rows, rows = x.rows();
  if (const GroupedKernels& grouped = grouped_kernels(); w.rows.cols <= grouped.most_cols) {
    uint8_t* weights = scratch.weights(slot);
    grouped.unpack(w.rows, tile, weights);
    for (int64_t first = 0; first < rows; first += kGroupRows) {
      float* to[kGroupRows];
      for (int64_t r = 0; r < kGroupRows; ++r) to[r] = y.as<float>() + std::min(first + r, rows - 1) * outputs;
      grouped.multiply(w.rows, tile, weights, scratch.digits.group(first / kGroupRows, rows, to));
    }
  } else {
    for (int64_t m = 0; m < rows; ++m)
      cpu::multiply(w.rows, scratch.digits.row(m), {tile, tile + 1}, y.as<float>() + m * outputs);
  }
  const cpu::TileRange own{tile * cpu::kTileRows, std::min(outputs, (tile + 1) * cpu::kTileRows)};
  for (int64_t m = 0; m < rows && w.rank > 0; ++m) add_correction(w, x, m, own, y.as<float>() + m * outputs);
}

void multiply_floats(const Tensor& x, const Tensor& w, ThreadPool& pool, const Tensor& y) {
  const int64_t rows = x.rows(), cols = x.cols(), outputs = w.dim(0);
  pool.parallel_for(outputs, [&](int64_t n) {
    for (int64_t m = 0; m < rows; ++m)
      y.as<float>()[m * outputs + n] = exact_kernels().dot(x.as<float>() + m * cols, w.as<float>() + n * cols, cols);
  });
}

// Matrices that are all packed and read x in the same digits.
void multiply_packed(const Tensor& x, std::span<const Product> products, ProductScratch& scratch, ThreadPool& pool) {
  const int64_t cols = x.cols();
  const float* factor = products.front().weight.packed->columns;
  pool.parallel_for(x.rows(), [&](int64_t m) { scratch.digits.assign(m, x.as<float>() + m * cols, cols, factor); });
  int64_t tiles = 0;
  for (const Product& product : products) tiles += product.weight.packed->rows.row_tiles();
  pool.parallel_for_slots(pool.threads(), tiles, [&](int64_t slot, int64_t tile) {
    const Product* own = products.data();
    for (; tile >= own->weight.packed->rows.row_tiles(); ++own) tile -= own->weight.packed->rows.row_tiles();
    multiply_tile(*own->weight.packed, x, scratch, slot, tile, own->y);
  });
}

int64_t tile_row_bytes(int64_t cols) {
  return (cols + cpu::kTileCols - 1) / cpu::kTileCols * cpu::kTileCols * cpu::kTileRows * 2;
}

}  // namespace

ProductScratch::ProductScratch(int64_t rows, int64_t most_cols, int threads)
    : digits(rows, most_cols),
      stride_(tile_row_bytes(most_cols)),
      weights_("row of tiles", static_cast<size_t>(std::max<int64_t>(1, stride_ * threads))) {}

void multiply_rows(const Tensor& x, std::span<const Product> products, ProductScratch& scratch, ThreadPool& pool) {
  for (size_t i = 0; i < products.size();) {
    const PackedMatrix* first = products[i].weight.packed;
    size_t end = i + 1;
    while (first != nullptr && end < products.size() && products[end].weight.packed != nullptr &&
           products[end].weight.packed->columns == first->columns)
      ++end;
    if (first != nullptr)
      multiply_packed(x, products.subspan(i, end - i), scratch, pool);
    else
      multiply_floats(x, products[i].weight.floats, pool, products[i].y);
    i = end;
  }
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
    const float half = x[i] > 0 ? 1.0F : 0.25F;  // products with powers of two are exact, so their order is of no account
    x[i] = half * x[i] * x[i];
  }
}

void add_residual(const float* x, const float* scale, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = (x != nullptr ? x[i] : 0.0F) + scale[i] * y[i];
}

}  // namespace fairway::textcode
