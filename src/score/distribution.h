// One target's distribution: log-probabilities from capped logits, an optional tilt towards one token (base/tilted_row.h), the
// target's score and a digest of all V values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/tilted_row.h"
#include "score/ledger.h"

namespace fairway {

struct Hint {
  int32_t token = -1;  // none
  float beta = 0;      // before damping
};
struct Tilt {
  Hint hint;
  double damping = 0;
};

struct Distribution {
  std::span<const float> logits;  // (V) after the softcap
  float lse = 0;                  // their log-sum-exp
  TiltedRow tilt;

  Distribution tilted(const Tilt& by) const;
};

// `nll` is the target's before the tilt. All V log-probabilities are rounded to f32, then hashed; they also go to `copy` where
// it is given. The digest does not depend on the target.
TargetScore finish(const Distribution& distribution, double nll, int32_t target, std::vector<float>* copy = nullptr);

// A score from what is known of its row: NLL before the tilt, digest after it.
inline TargetScore scored(double nll, uint64_t digest, const TiltedRow& tilt, int32_t target) {
  const double change = tilt.change(target);
  return {static_cast<float>(nll + change), digest, static_cast<float>(change)};
}

// base/row_digest.h of the values; ops/distribution_digest.h makes the same of a program's rows.
uint64_t digest_of(std::span<const float> log_probabilities);

}  // namespace fairway
