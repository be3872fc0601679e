#include "ops/cuda/mix_norm_fused.h"
#include "ops/cuda/sm90/mix_rows.cuh"

namespace fairway::cuda {

bool suits_fused_mix(const Context& context, const Backward<MixNorm>& b) {
  return context.path() == KernelPath::sm90 && b.in.x.spec.dtype == DType::bf16 && b.in.x.cols() == kMixWidth &&
         vectors(b, kMixWidth) && b.dout.normed && b.in.x.rows() < (int64_t{1} << 31);
}

void fused_mix_backward(Scratch& scratch, const MixNorm& op, const Backward<MixNorm>& b) {
  constexpr int kRowWarps = 4, kStages = 2, kPerProcessor = 2;  // lab/rows: others are as quick
  const auto kernel = mix_rows_backward<kRowWarps, kStages>;
  constexpr int kShared = sizeof(MixShared<kRowWarps, kStages>);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared), "cudaFuncSetAttribute");
  const int blocks = kPerProcessor * scratch.context().processors();
  const Partials partials{scratch.take<float>(blocks * 2 * kMixWidth), blocks, 2 * kMixWidth};
  const MixRows args{pointer<bf16>(b.in.x),
                     pointer<bf16>(b.in.x0),
                     pointer<bf16>(b.dout.mixed),
                     pointer<bf16>(b.dout.normed),
                     pointer<float>(b.in.mix),
                     pointer<float>(b.saved.rstd),
                     pointer<bf16>(b.din.x),
                     pointer<bf16>(b.din.x0),
                     b.din.x && b.din.x.accumulate,
                     b.din.x0 && b.din.x0.accumulate,
                     static_cast<unsigned>(b.in.x.rows()),
                     static_cast<float>(op.scale)};
  kernel<<<blocks, 32 * kRowWarps, kShared, scratch.stream()>>>(args, partials);
  check_launch("mix_norm' by rows");
  add_columns(scratch, partials, {{b.din.mix, 2 * kMixWidth}});
}

}  // namespace fairway::cuda
