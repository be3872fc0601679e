// One target's distribution: log-probabilities from capped logits, an optional tilt towards one token, the target's score and a
// digest of all V values. Tilt (scoring spec §2.7): p'(v) = p(v)·exp(b·[v = g])/Z with Z = 1 + p(g)·(exp(b) − 1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "score/ledger.h"

namespace fairway {

struct Tilt {
  int32_t token = -1;  // none
  double beta = 0;
};

struct Distribution {
  std::span<const float> logits;  // (V) after the softcap
  float lse = 0;                  // their log-sum-exp
  Tilt tilt;

  double probability(int32_t token) const;  // before the tilt, at most 1
};

// `nll` is the target's before the tilt. All V log-probabilities are rounded to f32, then hashed; they also go to `copy` where
// it is given. The digest does not depend on the target.
TargetScore finish(const Distribution& distribution, double nll, int32_t target, std::vector<float>* copy = nullptr);

// base/row_digest.h of the values; where nothing tilts, ops/distribution_digest.h makes the same of a program's rows.
uint64_t digest_of(std::span<const float> log_probabilities);

}  // namespace fairway
