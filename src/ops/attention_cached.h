// Attention of one new token per row over keys and values kept from earlier runs (spec §4.6.6): stores this token's k and v at
// `position`, then attends to positions 0 … position. Sixteen keys lie together with each channel's numbers side by side, so
// that scores are vector sums over memory read in order.
#pragma once

#include "ops/op.h"

namespace fairway {

inline constexpr int64_t kCacheKeys = 16;

// Position t, channel e of one head's keys.
inline int64_t cached_key(int64_t t, int64_t e, int64_t head_size) {
  return (t / kCacheKeys * head_size + e) * kCacheKeys + t % kCacheKeys;
}

struct AttentionCached {
  static constexpr std::string_view name = "attention_cached";
  static constexpr bool differentiable = false;
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // K
  double scale = 1;      // 1/√E
  template <class T>
  struct InOf {
    T q;         // (B, H·E)
    T k;         // (B, K·E)
    T v;         // (B, K·E)
    T keys;      // (B·K, T/kCacheKeys, E, kCacheKeys) read and written
    T values;    // (B·K, T, E) read and written
    T position;  // i32 (1), below T
  };
  template <class T>
  struct OutOf {
    T y;  // (B, H·E)
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.q = arg::activation,
                                 .k = arg::activation,
                                 .v = arg::activation,
                                 .keys = arg::state,
                                 .values = arg::state,
                                 .position = arg::index};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  OpPlan plan(const In&) const;
};

}  // namespace fairway
