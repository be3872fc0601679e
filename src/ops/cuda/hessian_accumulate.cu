#include <algorithm>

#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/gemm.h"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

// Larger sums than on the CPU, where kRowsAtOnce rows stay in the cache: each costs a pass over H, and tensor cores add in f32.
constexpr int64_t kRows = 4 * HessianAccumulate::kRowsAtOnce;

__global__ void add_lower(int64_t side, const float* products, double* hessian) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < side * side; i += int64_t{gridDim.x} * blockDim.x)
    if (i % side <= i / side) hessian[i] += static_cast<double>(products[i]);
}

}  // namespace

void forward(const HessianAccumulate&, const Forward<HessianAccumulate>& f) {
  Scratch scratch(f.queue);
  const int64_t side = f.in.rows.cols(), count = f.in.rows.dim(0);
  const Tensor products = scratch_tensor(scratch, {side, side}, DType::f32);
  for (int64_t begin = 0; begin < count; begin += kRows) {
    Tensor piece = f.in.rows;
    piece.data += static_cast<size_t>(begin * side) * size_of(piece.spec.dtype);
    piece.spec.shape = {std::min(kRows, count - begin), side};
    multiply(scratch, ProductLayout::tn, piece, piece, products);
    add_lower<<<blocks_for(scratch.context(), side * side), kThreads, 0, scratch.stream()>>>(side, pointer<float>(products),
                                                                                             pointer<double>(f.in.hessian));
    check_launch("hessian_accumulate");
  }
}

}  // namespace fairway::cuda
