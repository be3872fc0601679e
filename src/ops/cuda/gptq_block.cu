#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

// A warp takes a row: its block of columns one after another, then what the errors do to the rest.
__global__ void quantize_block(GptqBlock op, int64_t rows, int64_t columns, int64_t width, float* work, const float* factor,
                               const float* scale, float* error, double* loss) {
  const int64_t row = warp_index();
  if (row >= rows) return;
  float *w = work + row * columns, *errors = error + row * width;
  const double step = static_cast<double>(scale[row]), levels = op.levels;
  double total = 0;
  for (int64_t j = op.begin; j < op.end; ++j) {
    const auto value = static_cast<double>(w[j]);
    const double q = step > 0 ? fmin(fmax(rint(value / step), -levels), levels) : 0.0;
    const double e = (value - step * q) / static_cast<double>(factor[j * columns + j]);
    total += e * e;
    __syncwarp();
    if (lane_id() == 0) {
      w[j] = static_cast<float>(q);
      errors[j - op.begin] = static_cast<float>(e);
    }
    for (int64_t l = j + 1 + lane_id(); l < op.end; l += 32)
      w[l] = static_cast<float>(static_cast<double>(w[l]) - e * static_cast<double>(factor[j * columns + l]));
    __syncwarp();
  }
  if (lane_id() == 0) loss[row] += total;
  for (int64_t l = op.end + lane_id(); l < columns; l += 32) {
    double change = 0;
    for (int64_t k = op.begin; k < op.end; ++k)
      change += static_cast<double>(errors[k - op.begin]) * static_cast<double>(factor[k * columns + l]);
    w[l] = static_cast<float>(static_cast<double>(w[l]) - change);
  }
}

}  // namespace

void forward(const GptqBlock& op, const Forward<GptqBlock>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.work.rows();
  quantize_block<<<static_cast<unsigned>((rows + kWarps - 1) / kWarps), kThreads, 0, scratch.stream()>>>(
      op, rows, f.in.work.cols(), f.in.error.cols(), pointer<float>(f.in.work), pointer<float>(f.in.factor),
      pointer<float>(f.in.scale), pointer<float>(f.in.error), pointer<double>(f.in.loss));
  check_launch("gptq_block");
}

}  // namespace fairway::cuda
