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
void digest_row(const Forward<DistributionDigest>& f, int64_t row) {
  const int64_t vocab = f.in.logits.cols();
  const T* logits = f.in.logits.as<T>() + row * vocab;
  const auto lse = static_cast<float>(f.in.lse.as<T>()[row]);
  const uint64_t digest = row_digest::of(vocab, [=](int64_t v) { return static_cast<float>(logits[v]) - lse; });
  put_digest(digest, f.out.digest.as<int32_t>() + 2 * row);
}

}  // namespace fairway
