// Initial weights (spec §3.2), from the seed alone: each tensor draws from its own stream, so adding a feature moves no other.
#pragma once

#include "base/thread_pool.h"
#include "model/param_store.h"

namespace fairway {

void initialize(ParamStore& params, const ModelRecipe& model, uint64_t seed, ThreadPool& pool);

// Rows (or columns, of a tall matrix) orthonormal: the Q of a Gaussian matrix whose R has a positive diagonal.
void fill_orthogonal(float* matrix, int64_t rows, int64_t cols, uint64_t seed, uint64_t stream);

}  // namespace fairway
