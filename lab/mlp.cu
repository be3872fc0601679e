// The MLP's fused products at the size of pr1105, beside the same products without their epilogues (lab/products).
//   lab/build mlp && build/lab/mlp
#include <cstdio>

#include "lab/lab.cuh"
#include "ops/cuda/mlp_fused.h"

using namespace fairway;

int main() {
  lab::Lab lab;
  const int64_t M = 98304, D = 512, F = 1536;
  lab::Array m = lab.random({M, D}, 1), up = lab.random({F, D}, 2), down = lab.random({D, F}, 3), pre = lab.random({M, F}, 4);
  lab::Array post({M, F}, DType::bf16), dpre({M, F}, DType::bf16);
  const double flops = 2.0 * double(M * D) * double(F);
  const double forward = lab.time([&] {
    cuda::Scratch scratch(&lab.queue);
    cuda::fused_up(scratch, m.tensor, up.tensor, pre.tensor, post.tensor);
  });
  const double backward = lab.time([&] {
    cuda::Scratch scratch(&lab.queue);
    cuda::fused_down_gradient(scratch, m.tensor, down.tensor, pre.tensor, dpre.tensor);
  });
  std::printf("up with activation %.1f us (%.0f TFLOP/s), gradient of hidden with slope %.1f us (%.0f TFLOP/s)\n",
              forward * 1e6, flops / forward * 1e-12, backward * 1e6, flops / backward * 1e-12);
}
