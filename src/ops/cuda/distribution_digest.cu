// A thread takes a chain of a row's digest, and the four of a row are neighbours; each of them works out the row's tilt. In
// bf16 the logits are those before the softcap; it is rounded here as cast.cu's is, so that the digest is that of the floats
// which the host is told. Products and differences are kept apart, since a fused one would round otherwise.
#include "base/row_digest.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kChains = static_cast<int>(row_digest::kChains);
constexpr int kDigestThreads = 64;  // few rows to a block: there are a few thousand, and each takes long

__device__ float capped(float logit, float) { return logit; }
__device__ float capped(bf16 logit, float cap) { return __fmul_rn(cap, tanhf(__fdiv_rn(to_float(logit), cap))); }

struct DigestRows {
  int64_t rows, vocab;
  float cap;
  double damping;
  const float* lse;
  const int32_t* hint;  // null: no row is tilted
  const float* strength;
  int32_t* out;
};

template <class T>
__device__ TiltedRow tilt_of_row(const DigestRows& all, const T* z, int64_t row) {
  const int32_t hint = all.hint ? all.hint[row] : -1;
  if (hint < 0) return {};
  return tilted_row(hint, capped(z[hint], all.cap), all.lse[row], all.strength[row], all.damping);
}

template <class T>
__global__ void digest_rows(DigestRows all, const T* logits) {
  const int64_t item = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, row = min(item / kChains, all.rows - 1);
  const int chain = static_cast<int>(item % kChains);
  const T* z = logits + row * all.vocab;
  const float log_total = all.lse[row], cap = all.cap;
  const TiltedRow tilt = tilt_of_row(all, z, row);
  const uint64_t own =
      row_digest::chain_of(chain, all.vocab, [=](int64_t v) { return tilt.value(v, capped(z[v], cap), log_total); });
  uint64_t chains[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) chains[i] = __shfl_sync(~0u, own, i, kChains);
  if (chain != 0 || item >= all.rows * kChains) return;
  const uint64_t digest = row_digest::joined(chains, all.vocab);
  int32_t* out = all.out + row * (all.hint ? DistributionDigest::kTiltedColumns : DistributionDigest::kColumns);
  out[0] = static_cast<int32_t>(static_cast<uint32_t>(digest));
  out[1] = static_cast<int32_t>(static_cast<uint32_t>(digest >> 32));
  if (!all.hint) return;
  out[2] = __float_as_int(tilt.beta);
  out[3] = __float_as_int(tilt.log_z);
}

}  // namespace

void forward(const DistributionDigest& op, const Forward<DistributionDigest>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.logits.rows();
  if (rows == 0) return;
  const DigestRows all{rows,
                       f.in.logits.cols(),
                       static_cast<float>(op.cap),
                       op.damping,
                       pointer<float>(f.in.lse),
                       pointer<int32_t>(f.in.hint),
                       pointer<float>(f.in.strength),
                       pointer<int32_t>(f.out.digest)};
  with_type(f.in.logits, false, [&]<class T, int V>() {
    digest_rows<T><<<static_cast<unsigned>((rows * kChains + kDigestThreads - 1) / kDigestThreads), kDigestThreads, 0,
                     scratch.stream()>>>(all, pointer<T>(f.in.logits));
  });
  check_launch("distribution_digest");
}

}  // namespace fairway::cuda
