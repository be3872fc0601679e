// What a scorer keeps of each distribution besides the target's loss: the digest (base/row_digest.h) of all V log-probabilities
// z_v − lse, rounded to f32 (scoring spec §3.1).
#pragma once

#include "ops/op.h"

namespace fairway {

struct DistributionDigest {
  static constexpr std::string_view name = "distribution_digest";
  static constexpr bool differentiable = false;
  double cap = 30;  // of SoftcapCrossEntropy: in bf16 programs its logits wait for it, and the digest is of those after it
  template <class T>
  struct InOf {
    T logits;  // (N, V) as SoftcapCrossEntropy saves them
    T lse;     // (N)
  };
  template <class T>
  struct OutOf {
    T digest;  // i32 (N, 2): the low and the high half
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.logits = arg::activation, .lse = arg::statistic};
  static constexpr OutOf<Arg> kOut{.digest = arg::index};
  OpPlan plan(const In&) const;
};

inline uint64_t whole_digest(const int32_t* halves) {
  return static_cast<uint32_t>(halves[0]) | static_cast<uint64_t>(static_cast<uint32_t>(halves[1])) << 32;
}

}  // namespace fairway
