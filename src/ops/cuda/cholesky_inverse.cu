// In double; a column (or row) of a triangle is one launch, a warp for each of its elements.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

__device__ double warp_dot(const double* a, const double* b, int64_t count) {
  double total = 0;
  for (int64_t k = lane_id(); k < count; k += 32) total += a[k] * b[k];
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  return total;
}

__global__ void damped_lower(int64_t n, double damping, const double* matrix, double* a, double* status) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n * n; i += int64_t{gridDim.x} * blockDim.x)
    a[i] = i % n <= i / n ? matrix[i] + (i % n == i / n ? damping : 0.0) : 0.0;
  if (blockIdx.x == 0 && threadIdx.x == 0) *status = 1;
}

// Column j of the Cholesky factor. The diagonal goes to an array of its own: other warps still read the old one.
__global__ void cholesky_column(int64_t n, int64_t j, double* a, double* diagonal, double* status) {
  const int64_t i = j + warp_index();
  if (i >= n) return;
  const double pivot = a[j * n + j] - warp_dot(a + j * n, a + j * n, j), dot = warp_dot(a + i * n, a + j * n, j);
  if (lane_id() != 0) return;
  if (i == j) {
    if (!(pivot > 0) || !isfinite(pivot)) *status = 0;
    diagonal[j] = sqrt(pivot);
  } else {
    a[i * n + j] = (a[i * n + j] - dot) / sqrt(pivot);
  }
}

// Row i of L⁻¹, stored as column i of y.
__global__ void invert_row(int64_t n, int64_t i, const double* l, const double* diagonal, double* y) {
  const int64_t j = warp_index();
  if (j > i) return;
  const double known = warp_dot(l + i * n + j, y + j * n + j, i - j);
  if (lane_id() == 0) y[j * n + i] = ((i == j ? 1.0 : 0.0) - known) / diagonal[i];
}

__global__ void inverse_product(int64_t n, const double* y, double* a) {  // a_ij = Σ_{k≥i} y_ik·y_jk, j ≤ i
  for (int64_t at = warp_index(); at < n * n; at += int64_t{gridDim.x} * kWarps) {
    const int64_t i = at / n, j = at % n;
    if (j > i) continue;
    const double value = warp_dot(y + i * n + i, y + j * n + i, n - i);
    if (lane_id() == 0) a[at] = value;
  }
}

__global__ void store_factor(int64_t n, const double* a, const double* diagonal, const double* status, float* factor) {
  for (int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; at < n * n; at += int64_t{gridDim.x} * blockDim.x) {
    const int64_t i = at / n, j = at % n;
    const double value = j < i ? 0.0 : i == j ? diagonal[i] : a[j * n + i];
    factor[at] = *status == 0 ? 0.0f : static_cast<float>(value);
  }
}

void cholesky(Scratch& scratch, int64_t n, double* a, double* diagonal, double* status) {
  for (int64_t j = 0; j < n; ++j) {
    const auto blocks = static_cast<unsigned>((n - j + kWarps - 1) / kWarps);
    cholesky_column<<<blocks, kThreads, 0, scratch.stream()>>>(n, j, a, diagonal, status);
  }
}

}  // namespace

void forward(const CholeskyInverse& op, const Forward<CholeskyInverse>& f) {
  Scratch scratch(f.queue);
  const int64_t n = f.in.matrix.cols();
  auto *a = scratch.take<double>(n * n), *y = scratch.take<double>(n * n), *diagonal = scratch.take<double>(n);
  auto* status = pointer<double>(f.in.status);
  damped_lower<<<blocks_for(scratch.context(), n * n), kThreads, 0, scratch.stream()>>>(
      n, op.damping, pointer<double>(f.in.matrix), a, status);
  cholesky(scratch, n, a, diagonal, status);
  for (int64_t i = 0; i < n; ++i) {
    const auto blocks = static_cast<unsigned>((i + kWarps) / kWarps);
    invert_row<<<blocks, kThreads, 0, scratch.stream()>>>(n, i, a, diagonal, y);
  }
  inverse_product<<<blocks_for(scratch.context(), n * n, kWarps), kThreads, 0, scratch.stream()>>>(n, y, a);
  cholesky(scratch, n, a, diagonal, status);
  store_factor<<<blocks_for(scratch.context(), n * n), kThreads, 0, scratch.stream()>>>(n, a, diagonal, status,
                                                                                        pointer<float>(f.in.factor));
  check_launch("cholesky_inverse");
}

}  // namespace fairway::cuda
