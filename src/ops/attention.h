// Causal softmax attention with grouped key/value heads; query head h reads kv head h / (H/K) (spec §4.6.6).
// With segments, row m attends to rows segment_start[m] … m; without, to its own sequence of row_length up to itself.
// What leaves the heads goes through HeadOutput within the same call where that is asked for: backends save a pass over the
// rows in each direction, since Σ y·dy of a head, which its gradient needs, is Σ z·dz.
#pragma once

#include "ops/head_output.h"
#include "ops/segment_tiles.h"

namespace fairway {

struct Attention {
  static constexpr std::string_view name = "attention";
  static constexpr bool differentiable = true;
  static constexpr double kBackwardFlops = 2.5;  // over those of forward: five products where forward has two
  int64_t row_length = 0;                        // T
  int64_t heads = 0;                             // H
  int64_t kv_heads = 0;                          // K
  double scale = 1;                              // 1/√E
  bool exclusive = false;                        // the own value's component is taken away
  template <class T>
  struct InOf {
    T q;              // (M, H·E)
    T k;              // (M, K·E)
    T v;              // (M, K·E)
    T segment_start;  // i32 (M), non-decreasing, optional
    T logit;          // (M, H) of the gate, optional
    T tiles;          // SegmentTiles of segment_start, for backends that work in tiles; where it is absent they make it
  };
  template <class T>
  struct OutOf {
    T z;  // (M, H·E)
  };
  template <class T>
  struct SavedOf {
    T lse;  // (M, H) log-sum-exp of each row's scaled scores
    T dot;  // (M, H) of HeadOutput, (0, H) where that has nothing to do
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{.q = arg::activation,
                                 .k = arg::activation,
                                 .v = arg::activation,
                                 .segment_start = arg::index.optional(),
                                 .logit = arg::statistic.optional(),
                                 .tiles = arg::index.optional()};
  static constexpr OutOf<Arg> kOut{.z = arg::activation.reread()};
  static constexpr SavedOf<Arg> kSaved{.lse = arg::statistic, .dot = arg::statistic};
  OpPlan plan(const In&) const;

  bool shapes_output(const In& in) const { return exclusive || in.logit; }
  // HeadOutput as the end of a call, in place, and as the beginning of its gradient, which leaves dy and begins dv.
  HeadOutput output() const { return {.heads = heads, .kv_heads = kv_heads}; }
  Forward<HeadOutput> output_of(const Forward<Attention>& f) const {
    return {{f.out.z, exclusive ? f.in.v : Tensor{}, f.in.logit}, {f.out.z}, {f.saved.dot}, {}, f.queue};
  }
  Backward<HeadOutput> output_of(const Backward<Attention>& b, const Tensor& dy) const {
    const Tensor none{};
    return {{b.out.z, exclusive ? b.in.v : none, b.in.logit}, {b.out.z}, {b.saved.dot}, {b.dout.z},
            {dy, exclusive ? b.din.v : none, b.din.logit},    {},        b.queue};
  }
  // The gradient of what comes before HeadOutput, whose own has left dy. `along` of a head is still Σ out.z·(the call's
  // dout.z).
  Backward<Attention> before_output(Backward<Attention> b, const Tensor& dy) const {
    b.dout.z = dy;
    b.din.v.accumulate |= exclusive;
    return b;
  }
};

}  // namespace fairway
