// What a scorer keeps of each distribution besides the target's loss: the digest (base/row_digest.h) of all V log-probabilities
// z_v − lse, rounded to f32 (scoring spec §3.1). Where rows have hints, of the log-probabilities after the tilt
// (base/tilted_row.h), with the two numbers that the tilt came to.
#pragma once

#include <bit>

#include "base/tilted_row.h"
#include "ops/op.h"

namespace fairway {

struct DistributionDigest {
  static constexpr std::string_view name = "distribution_digest";
  static constexpr bool differentiable = false;
  double cap = 30;  // of SoftcapCrossEntropy: in bf16 programs its logits wait for it, and the digest is of those after it
  double damping = 0;
  template <class T>
  struct InOf {
    T logits;    // (N, V) as SoftcapCrossEntropy saves them
    T lse;       // (N)
    T hint;      // (N) the token that the tilt favours, or −1; absent: no row is tilted
    T strength;  // (N) β before damping; beside hints
  };
  template <class T>
  struct OutOf {
    T digest;  // i32 (N, 2): the low and the high half; with hints (N, 4): then the bits of β and of ln Z
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{
      .logits = arg::activation, .lse = arg::statistic, .hint = arg::index.optional(), .strength = arg::statistic.optional()};
  static constexpr OutOf<Arg> kOut{.digest = arg::index};
  OpPlan plan(const In&) const;

  static constexpr int64_t kColumns = 2, kTiltedColumns = 4;
};

inline uint64_t whole_digest(const int32_t* halves) {
  return static_cast<uint32_t>(halves[0]) | static_cast<uint64_t>(static_cast<uint32_t>(halves[1])) << 32;
}

// Of one of four columns; `hint`: the row's.
inline TiltedRow tilt_of(const int32_t* columns, int32_t hint) {
  return {hint, std::bit_cast<float>(columns[2]), std::bit_cast<float>(columns[3])};
}

}  // namespace fairway
