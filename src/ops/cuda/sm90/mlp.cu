#include "ops/cuda/mlp_fused.h"
#include "ops/cuda/sm90/epilogues.cuh"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

constexpr int kPatch = 32;

// out (F, D) = (diag(scale)·w)ᵀ of w (D, F), a patch of 32 × 32 a block; D and F are multiples of 32.
__global__ void scale_and_transpose(int64_t width, int64_t hidden, const bf16* w, const float* scale, bf16* out) {
  __shared__ float patch[kPatch][kPatch + 1];
  const int64_t row = int64_t{blockIdx.y} * kPatch, column = int64_t{blockIdx.x} * kPatch;
  for (unsigned i = threadIdx.y; i < kPatch; i += blockDim.y)
    patch[i][threadIdx.x] = scale[row + i] * to_float(w[(row + i) * hidden + column + threadIdx.x]);
  __syncthreads();
  for (unsigned i = threadIdx.y; i < kPatch; i += blockDim.y)
    assign(out[(column + i) * width + row + threadIdx.x], patch[threadIdx.x][i]);
}

void require_aligned(const Tensor& t) {
  FAIRWAY_ASSERT(reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.pitch == 0, "the fused MLP wants dense, aligned tensors");
}
uint4* words(const Tensor& signs) { return reinterpret_cast<uint4*>(signs.data); }

}  // namespace

bool suits_fused_mlp(const Context& context, const Tensor& m, int64_t hidden) {
  constexpr int64_t kFewest = 1024;            // below it there is less than a tile for each processor
  constexpr int64_t kMost = int64_t{1} << 22;  // indices of tiles are ints
  return context.path() == KernelPath::sm90 && m.spec.dtype == DType::bf16 && (m.rows() >= kFewest || context.rows_alike()) &&
         m.rows() <= kMost && m.cols() == sm90::kSum && hidden % (2 * sm90::kSide) == 0 && hidden <= kFewest * 16;
}

void fused_up(Scratch& scratch, const Tensor& m, const Tensor& up, const Tensor& post, const Tensor& signs) {
  for (const Tensor& t : {m, up, post, signs}) require_aligned(t);
  if (signs)
    sm90::launch_product(scratch, m, up, sm90::Activate<true>{sm90::matrix(post), words(signs)});
  else
    sm90::launch_product(scratch, m, up, sm90::Activate<false>{sm90::matrix(post), nullptr});
}

void fused_down_gradient(Scratch& scratch, const FusedSlope& args) {
  for (const Tensor& t : {args.g, args.post, args.signs, args.dpre}) require_aligned(t);
  const int64_t width = args.down.dim(0), hidden = args.down.dim(1);
  const Tensor weight = scratch_tensor(scratch, {hidden, width}, DType::bf16);
  const dim3 grid(static_cast<unsigned>(hidden / kPatch), static_cast<unsigned>(width / kPatch));
  scale_and_transpose<<<grid, dim3(kPatch, 8), 0, scratch.stream()>>>(width, hidden, pointer<bf16>(args.down),
                                                                      pointer<float>(args.scale), pointer<bf16>(weight));
  check_launch("scale_and_transpose");
  sm90::launch_product(scratch, args.g, weight,
                       sm90::ScaleBySlope{sm90::matrix(args.post), sm90::matrix(args.dpre), words(args.signs)});
}

}  // namespace fairway::cuda
