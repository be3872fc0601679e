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
  struct In {
    Tensor tokens;  // i32 (M)
    Tensor table;   // (R, d)
    Tensor proj;    // (N, d)
    Tensor scale;   // (1)
  };
  struct Out {
    Tensor y;  // (M, N)
  };
  struct Saved {
    Tensor gathered;  // (M, d) the looked-up rows
  };
  OpPlan plan(const In&) const;  // backward workspace: (N, d) for gᵀ·gathered, then (M, d) for the rows' gradients
};

}  // namespace fairway
