#include "ops/cuda/gemm.h"
#include "ops/cuda/head_fused.h"
#include "ops/cuda/sm90/epilogues.cuh"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

using namespace sm90;

constexpr float kLog2E = 1.4426950408889634f;

__device__ inline float inverse_of(float x) {
  float out;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(out) : "f"(x));
  return out;
}

// z = cap·tanh(ℓ/cap) is within ±cap, so e^z needs no maximum.
struct Soften {
  Matrix slopes;  // W; rows say how many there are, data may be null
  const int32_t* targets;
  float* totals;     // (V/128, M) Σ e^z of a strip's columns
  float* of_target;  // (M) z
  float cap;

  __device__ void prepare(const Place&) const {}
  __device__ Nothing fetch(const Place&) const { return {}; }
  __device__ void finish(Sums& sums, const Nothing&, const Place& place) const {
    const float twice = 2 * kLog2E / cap, once = cap * kLog2E;
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const int row = place.row + 64 * h + 8 * b;
        const bool inside = row < slopes.rows;
        const int target = inside ? targets[row] - place.column : -1;
        float total = 0;
#pragma unroll
        for (int g = 0; g < 4; ++g) {
          Eight w;
          float slope[8];
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const float part = inverse_of(exp2_fast(element(sums, h, b, g, i) * twice) + 1);  // tanh = 1 − 2·part
            const float tanh = fmaf(-2.0f, part, 1.0f), e = exp2_fast(tanh * once);
            total += e;
            slope[i] = 4 * e * part * (1 - part);
            if (target == 32 * g + i) of_target[row] = cap * tanh;
          }
#pragma unroll
          for (int i = 0; i < 4; ++i) w.pair[i] = pack(slope[2 * i], slope[2 * i + 1]);
          if (inside && slopes.data != nullptr)
            store_eight(slopes.data + int64_t{row} * slopes.width + place.column + 32 * g, w);
        }
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        if (inside && lane_id() % 4 == 0) totals[int64_t{place.column / kSide} * slopes.rows + row] = total;
      }
  }
};

struct HeadRows {
  int rows, strips, vocab;
  float cap;
};

__global__ void finish_rows(HeadRows n, const float* totals, const float* of_target, const int32_t* targets, bf16* slopes,
                            float* lse, float* nll) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n.rows) return;
  float total = 0;
  for (int s = 0; s < n.strips; ++s) total += totals[int64_t{s} * n.rows + row];
  const float z = of_target[row], part = z / n.cap, log_total = logf(total);
  lse[row] = log_total;
  nll[row] = log_total - z;
  if (slopes != nullptr)
    slopes[int64_t{row} * n.vocab + targets[row]] = __float2bfloat16_rn((expf(z) - total) * (1 - part * part));
}

// to = factor_m·from, factor = dloss/M·e^(−lse): what W lacks to be the logits' gradient.
__global__ void scale_by_factor(int64_t rows, Source<bf16> from, const float* lse, Source<float> dloss, Sink<bf16> to) {
  const float share = dloss[0] / static_cast<float>(rows);
  for (int64_t row = warp_index(); row < rows; row += int64_t{gridDim.x} * kWarps) {
    const float factor = share * expf(-lse[row]);
#pragma unroll
    for (int j = 0; j < kSum / 256; ++j) {
      const int64_t at = row * kSum + j * 256 + lane_id() * 8;
      float x[8];
      from.load(at, x);
#pragma unroll
      for (float& v : x) v *= factor;
      to.store(at, x);
    }
  }
}

void scale_rows_by_factor(Scratch& scratch, const Tensor& from, const Backward<SoftcapCrossEntropy>& b, const Tensor& to) {
  const int64_t rows = from.rows();
  scale_by_factor<<<blocks_for(scratch.context(), rows, kWarps), kThreads, 0, scratch.stream()>>>(
      rows, source<bf16>(from), pointer<float>(b.saved.lse), source<float>(b.dout.loss), sink<bf16>(to));
  check_launch("the head's rows");
}

bool aligned(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && t.pitch == 0; }

}  // namespace

bool suits_fused_head(const Context& context, const SoftcapCrossEntropy& op, const SoftcapCrossEntropy::In& in) {
  constexpr int64_t kFewest = 1024, kMost = int64_t{1} << 22;
  constexpr double kMostCap = 60;  // e^cap times the vocabulary is a float
  const int64_t vocab = in.table.rows();
  return !op.logits_wanted && !in.addition && !in.expected && op.cap <= kMostCap && context.path() == KernelPath::sm90 &&
         in.x.spec.dtype == DType::bf16 && in.table.spec.dtype == DType::bf16 && in.x.cols() == kSum &&
         (in.x.rows() >= kFewest || context.rows_alike()) && in.x.rows() <= kMost && vocab % (2 * kSide) == 0 &&
         vocab <= 16 * kFewest && aligned(in.x) && aligned(in.table);
}

void fused_head_forward(Scratch& scratch, const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& f) {
  const auto rows = static_cast<int>(f.in.x.rows()), vocab = static_cast<int>(f.in.table.rows());
  const HeadRows n{rows, vocab / kSide, vocab, static_cast<float>(op.cap)};
  auto *totals = scratch.take<float>(int64_t{n.strips} * rows), *of_target = scratch.take<float>(rows);
  bf16* slopes = pointer<bf16>(f.saved.logits);
  const auto* targets = pointer<int32_t>(f.in.targets);
  launch_product(scratch, f.in.x, f.in.table, Soften{{slopes, rows, vocab}, targets, totals, of_target, n.cap});
  finish_rows<<<(rows + kThreads - 1) / kThreads, kThreads, 0, scratch.stream()>>>(
      n, totals, of_target, targets, slopes, pointer<float>(f.saved.lse), pointer<float>(f.out.nll));
  check_launch("the head with its loss");
}

void fused_head_backward(Scratch& scratch, const Backward<SoftcapCrossEntropy>& b) {
  if (b.din.x) {
    const Tensor raw = scratch_tensor(scratch, b.in.x.spec.shape, DType::bf16);
    multiply(scratch, ProductLayout::nn, b.saved.logits, b.in.table, raw);
    scale_rows_by_factor(scratch, raw, b, b.din.x);
  }
  if (b.din.table) {
    const Tensor scaled = scratch_tensor(scratch, b.in.x.spec.shape, DType::bf16);
    scale_rows_by_factor(scratch, b.in.x, b, scaled);
    multiply(scratch, ProductLayout::tn, b.saved.logits, scaled, b.din.table);
  }
}

}  // namespace fairway::cuda
