// A small table lifted to the model's width: y[m] = scale · table[j(m)] · projᵀ (spec §4.2 bigram hash, §4.6.2 value
// embedding).
#pragma once

#include "ops/op.h"

namespace fairway {

// Row of the bigram table for a token and its predecessor; the last row belongs to the first position of each sequence.
inline int64_t bigram_row(int64_t token, int64_t previous, int64_t rows) {
  return ((36313 * token) ^ (27191 * previous)) % (rows - 1);
}

struct ProjectedEmbed {
  static constexpr std::string_view name = "projected_embed";
  static constexpr bool differentiable = true;
  enum class Index : uint8_t { token, bigram };
  Index index = Index::token;
  int64_t row_length = 0;  // T: where sequences start
  template <class T>
  struct InOf {
    T tokens;  // i32 (M)
    T table;   // (R, d)
    T proj;    // (N, d)
    T scale;   // (1)
  };
  template <class T>
  struct OutOf {
    T y;  // (M, N)
  };
  template <class T>
  struct SavedOf {
    T gathered;  // (M, d) the looked-up rows
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = SavedOf<Tensor>;
  static constexpr InOf<Arg> kIn{
      .tokens = arg::index, .table = arg::matrix.unread(), .proj = arg::matrix, .scale = arg::vector};
  static constexpr OutOf<Arg> kOut{.y = arg::activation};
  static constexpr SavedOf<Arg> kSaved{.gathered = arg::activation};
  OpPlan plan(const In&) const;  // backward workspace: (N, d) for gᵀ·gathered, then (M, d) for the rows' gradients
};

}  // namespace fairway
