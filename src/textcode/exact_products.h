// Products of several rows with a matrix, packed or of floats, and what follows them row by row; see exact_executor.h.
#pragma once

#include <vector>

#include "generate/packed_weights.h"
#include "ops/all_ops.h"

namespace fairway::textcode {

struct Matrix {
  const PackedMatrix* packed = nullptr;  // null: `floats`
  Tensor floats;                         // (N, C)
};

// y (M, N) = x (M, C)·Wᵀ; `digits` has one vector for each row at least.
void multiply_rows(const Tensor& x, const Matrix& w, std::vector<cpu::DigitVector>& digits, ThreadPool& pool, const Tensor& y);
void unpack_row(const PackedMatrix& table, int64_t row, float* out);
void projected_embed(const ProjectedEmbed& op, const Forward<ProjectedEmbed>& call, ThreadPool& pool);

void leaky_squares(float* x, int64_t count);  // the activation of Mlp, in place
// y = x + scale⊙y; without x just the second term.
void add_residual(const float* x, const float* scale, int64_t count, float* y);

}  // namespace fairway::textcode
