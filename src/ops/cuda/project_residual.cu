#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/scaled_weights.h"

namespace fairway::cuda {

void forward(const ProjectResidual&, const Forward<ProjectResidual>& f) {
  Scratch scratch(f.queue);
  project_into(scratch, f.in.x, f.in.h, scaled_weight(scratch, f.in.weight, f.in.scale), f.out.y);
}

void backward(const ProjectResidual&, const Backward<ProjectResidual>& b) {
  Scratch scratch(b.queue);
  if (b.din.h) multiply(scratch, ProductLayout::nn, b.dout.y, scaled_weight(scratch, b.in.weight, b.in.scale), b.din.h);
  project_gradients(scratch, b.dout.y, b.in.h, b.in.weight, b.in.scale, b.din.weight, b.din.scale);
  pass_through(scratch, b.dout.y, b.din.x);
}

}  // namespace fairway::cuda
