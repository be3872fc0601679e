// DistributionDigest in plain C++, as the backends on the CPU run it: one row.
#pragma once

#include "base/row_digest.h"
#include "ops/distribution_digest.h"

namespace fairway {

inline void put_digest(uint64_t digest, int32_t* halves) {
  halves[0] = static_cast<int32_t>(static_cast<uint32_t>(digest));
  halves[1] = static_cast<int32_t>(static_cast<uint32_t>(digest >> 32));
}

template <class T>
TiltedRow tilt_of_row(const DistributionDigest& op, const Forward<DistributionDigest>& f, const T* logits, int64_t row) {
  const int32_t hint = f.in.hint.present ? f.in.hint.as<int32_t>()[row] : -1;
  if (hint < 0) return {};
  return tilted_row(hint, static_cast<float>(logits[hint]), static_cast<float>(f.in.lse.as<T>()[row]),
                    static_cast<float>(f.in.strength.as<T>()[row]), op.damping);
}

template <class T>
void digest_row(const DistributionDigest& op, const Forward<DistributionDigest>& f, int64_t row) {
  const int64_t vocab = f.in.logits.cols();
  const T* logits = f.in.logits.as<T>() + row * vocab;
  const auto lse = static_cast<float>(f.in.lse.as<T>()[row]);
  const TiltedRow tilt = tilt_of_row(op, f, logits, row);
  int32_t* out = f.out.digest.as<int32_t>() + row * f.out.digest.cols();
  put_digest(row_digest::of(vocab, [=](int64_t v) { return tilt.value(v, static_cast<float>(logits[v]), lse); }), out);
  if (!f.in.hint.present) return;
  out[2] = std::bit_cast<int32_t>(tilt.beta);
  out[3] = std::bit_cast<int32_t>(tilt.log_z);
}

}  // namespace fairway
