// Products of several rows with a matrix, packed or of floats, and what follows them row by row; see exact_executor.h.
#pragma once

#include <span>
#include <vector>

#include "generate/packed_weights.h"
#include "ops/all_ops.h"
#include "tensor/arena.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {

struct Matrix {
  const PackedMatrix* packed = nullptr;  // null: `floats`
  Tensor floats;                         // (N, C)
};

struct Product {
  Matrix weight;
  Tensor y;  // (M, N)
};

// What products need besides: the digits of all rows, and for each thread a row of tiles unpacked.
class ProductScratch {
 public:
  ProductScratch(int64_t rows, int64_t most_cols, int threads);

  DigitRows digits;
  uint8_t* weights(int64_t slot) { return reinterpret_cast<uint8_t*>(weights_.data()) + slot * stride_; }

 private:
  int64_t stride_;
  Memory weights_;
};

// Every y = x (M, C)·Wᵀ; all of them in one loop where their inputs are cut into the same digits.
void multiply_rows(const Tensor& x, std::span<const Product> products, ProductScratch& scratch, ThreadPool& pool);
void unpack_row(const PackedMatrix& table, int64_t row, float* out);
void projected_embed(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call, ThreadPool& pool);

void leaky_squares(float* x, int64_t count);  // the activation of Mlp, in place
// y = x + scale⊙y; without x just the second term.
void add_residual(const float* x, const float* scale, int64_t count, float* y);

}  // namespace fairway::textcode
