// Tied head with softcap and cross-entropy. The product leaves logits in the tensors' type and nothing wider is stored: in
// float their place then holds z = cap·tanh(ℓ/cap), as the op promises; in bf16 it keeps ℓ, since z would be rounded a second
// time. Sums and exponentials are float. A warp takes a row. On Hopper a head whose logits nobody reads goes through
// head_fused.h.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"
#include "ops/cuda/head_fused.h"
#include "ops/cuda/scaled_weights.h"
#include "ops/cuda/softcap.cuh"

namespace fairway::cuda {
namespace {

struct Head {
  int64_t rows, vocab;
  float cap;
};

template <class T, int V>
__global__ void head_forward(Head h, T* logits, const int32_t* targets, const float* expected, Sink<float> lse,
                             Sink<float> nll) {
  const Source<T> in{logits};
  const Sink<T> capped{logits, false};
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < h.rows; m += int64_t{gridDim.x} * kWarps) {
    const int64_t row = m * h.vocab;
    float target = expected != nullptr ? 0.0f : soft_cap<T>(in[row + targets[m]], h.cap);
    float x[V], highest = -INFINITY, total = 0;
    for (int64_t c = lane_id() * V; c < h.vocab; c += 32 * V) {
      in.load(row + c, x);
#pragma unroll
      for (int k = 0; k < V; ++k) highest = fmaxf(highest, x[k]);
    }
    for (int step = 16; step > 0; step /= 2) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, step));
    highest = soft_cap<T>(highest, h.cap);
    for (int64_t c = lane_id() * V; c < h.vocab; c += 32 * V) {
      in.load(row + c, x);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        x[k] = soft_cap<T>(x[k], h.cap);
        total += exponential<T>(x[k] - highest);
        if (expected != nullptr) target += expected[row + c + k] * x[k];
      }
      if constexpr (sizeof(T) == 4) capped.store(row + c, x);
    }
    const float log_total = highest + logf(warp_sum(total));
    if (expected != nullptr) target = warp_sum(target);
    if (lane_id() == 0) {
      lse.put(m, log_total);
      nll.put(m, log_total - target);
    }
  }
}

const float* expected_of(const SoftcapCrossEntropy::In& in) { return in.expected ? pointer<float>(in.expected) : nullptr; }

__global__ void mean(int64_t count, const float* x, Sink<float> out) {  // one block
  __shared__ double sums[32];
  double total = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) total += static_cast<double>(x[i]);
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  if (lane_id() == 0) sums[warp_id()] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned i = 1; i < blockDim.x / 32; ++i) total += sums[i];
  out.put(0, static_cast<float>(total / static_cast<double>(count)));
}

template <class T, int V>
__global__ void logit_gradients(Head h, Source<T> logits, const int32_t* targets, const float* expected, Source<float> lse,
                                Source<float> dloss, Sink<T> out) {
  const float share = dloss[0] / static_cast<float>(h.rows);
  for (int64_t m = static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); m < h.rows; m += int64_t{gridDim.x} * kWarps) {
    const int64_t row = m * h.vocab, target = targets[m];
    const float log_total = lse[m];
    float x[V];
    for (int64_t c = lane_id() * V; c < h.vocab; c += 32 * V) {
      logits.load(row + c, x);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        const float z = sizeof(T) == 2 ? soft_cap<T>(x[k], h.cap) : x[k], part = z / h.cap;
        const float wanted = expected != nullptr ? expected[row + c + k] : (c + k == target ? 1.0f : 0.0f);
        x[k] = (exponential<T>(z - log_total) - wanted) * (1 - part * part) * share;
      }
      out.store(row + c, x);
    }
  }
}

}  // namespace

void forward(const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& f) {
  Scratch scratch(f.queue);
  const Head h{f.in.x.rows(), f.in.table.dim(0), static_cast<float>(op.cap)};
  if (suits_fused_head(scratch.context(), op, f.in)) {
    fused_head_forward(scratch, op, f);
  } else {
    const Tensor logits = f.saved.logits ? f.saved.logits : scratch_tensor(scratch, {h.rows, h.vocab}, f.in.x.spec.dtype);
    project_into(scratch, f.in.addition, f.in.x, f.in.table, logits);
    with_type(f.in.x, vectors(f, h.vocab), [&]<class T, int V>() {
      head_forward<T, V><<<blocks_for(scratch.context(), h.rows, kWarps), kThreads, 0, scratch.stream()>>>(
          h, pointer<T>(logits), pointer<int32_t>(f.in.targets), expected_of(f.in), sink<float>(f.saved.lse),
          sink<float>(f.out.nll));
    });
    check_launch("softcap_cross_entropy");
  }
  mean<<<1, 1024, 0, scratch.stream()>>>(h.rows, pointer<float>(f.out.nll), sink<float>(f.out.loss));
  check_launch("mean");
}

void backward(const SoftcapCrossEntropy& op, const Backward<SoftcapCrossEntropy>& b) {
  Scratch scratch(b.queue);
  const Head h{b.in.x.rows(), b.in.table.dim(0), static_cast<float>(op.cap)};
  if (suits_fused_head(scratch.context(), op, b.in)) return fused_head_backward(scratch, b);
  Tensor dlogits = b.saved.logits;  // in their place where nobody else reads them
  if (op.logits_wanted) dlogits.data = b.workspace.data;
  if (b.din.addition && !b.din.addition.accumulate) dlogits = b.din.addition;
  with_type(b.in.x, vectors(b, h.vocab), [&]<class T, int V>() {
    logit_gradients<T, V><<<blocks_for(scratch.context(), h.rows, kWarps), kThreads, 0, scratch.stream()>>>(
        h, source<T>(b.saved.logits), pointer<int32_t>(b.in.targets), expected_of(b.in), source<float>(b.saved.lse),
        source<float>(b.dout.loss), sink<T>(dlogits));
  });
  check_launch("softcap_cross_entropy'");
  pass_through(scratch, dlogits, b.din.addition);
  multiply(scratch, ProductLayout::nn, dlogits, b.in.table, b.din.x);
  multiply(scratch, ProductLayout::tn, dlogits, b.in.x, b.din.table);
}

}  // namespace fairway::cuda
