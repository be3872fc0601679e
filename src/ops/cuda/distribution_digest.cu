// A thread takes a chain of a row's digest, and the four of a row are neighbours. In bf16 the logits are those before the
// softcap; it is rounded here as cast.cu's is, so that the digest is that of the floats which the host is told. Products and
// differences are kept apart, since a fused one would round otherwise.
#include "base/row_digest.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kChains = static_cast<int>(row_digest::kChains);
constexpr int kDigestThreads = 64;  // few rows to a block: there are a few thousand, and each takes long

__device__ float capped(float logit, float) { return logit; }
__device__ float capped(bf16 logit, float cap) { return __fmul_rn(cap, tanhf(__fdiv_rn(to_float(logit), cap))); }

template <class T>
__global__ void digest_rows(int64_t rows, int64_t vocab, float cap, const T* logits, const float* lse, uint64_t* digests) {
  const int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, row = min(item / kChains, rows - 1);
  const int chain = static_cast<int>(item % kChains);
  const T* z = logits + row * vocab;
  const float log_total = lse[row];
  const uint64_t own = row_digest::chain_of(chain, vocab, [=](int64_t v) { return __fsub_rn(capped(z[v], cap), log_total); });
  uint64_t chains[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) chains[i] = __shfl_sync(~0u, own, i, kChains);
  if (chain == 0 && item < rows * kChains) digests[row] = row_digest::joined(chains, vocab);
}

}  // namespace

void forward(const DistributionDigest& op, const Forward<DistributionDigest>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.logits.rows();
  if (rows == 0) return;
  auto* digests = scratch.take<uint64_t>(rows);  // the result may lie at an odd place
  with_type(f.in.logits, false, [&]<class T, int V>() {
    digest_rows<T><<<static_cast<unsigned>((rows * kChains + kDigestThreads - 1) / kDigestThreads), kDigestThreads, 0,
                     scratch.stream()>>>(rows, f.in.logits.cols(), static_cast<float>(op.cap), pointer<T>(f.in.logits),
                                         pointer<float>(f.in.lse), digests);
  });
  check_launch("distribution_digest");
  check(cudaMemcpyAsync(f.out.digest.data, digests, static_cast<size_t>(rows) * sizeof(uint64_t), cudaMemcpyDeviceToDevice,
                        scratch.stream()),
        "cudaMemcpyAsync");
}

}  // namespace fairway::cuda
