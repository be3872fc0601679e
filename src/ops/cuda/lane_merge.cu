#include "ops/cuda/combine.cuh"
#include "ops/cuda/cuda.h"

namespace fairway::cuda {

void forward(const LaneMerge&, const Forward<LaneMerge>& f) { half_sum(f, f.queue, f.in.lane0, f.in.lane1, f.out.y, 0.5f); }

void backward(const LaneMerge&, const Backward<LaneMerge>& b) {
  half_sum_backward(b, b.queue, b.dout.y, b.din.lane0, b.din.lane1, 0.5f);
}

}  // namespace fairway::cuda
