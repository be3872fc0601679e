// Rows of a table by index: read, and added to for its gradient.
#pragma once

#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {

// y[m, :] = table[index[m], :].
void gather_rows(Scratch& scratch, const int32_t* index, const Tensor& table, const Tensor& y, bool vectorized);

// table[index[m], :] (+)= rows[m, :], added in an order that depends on the indices alone. index: i32 (M) on the device, each
// below the table's rows.
void scatter_rows(Scratch& scratch, const int32_t* index, const Tensor& rows, const Tensor& table);

}  // namespace fairway::cuda
