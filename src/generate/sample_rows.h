// Many texts at once from a model's own distribution, for calibration (scoring spec §4.7): every row has random numbers of its
// own, so that a row's text does not depend on how many are made together.
#pragma once

#include <functional>
#include <span>

#include "generate/decoder.h"

namespace fairway {

struct RowSampling {
  double temperature = 0.8;
  uint64_t seed = 0;
  int64_t first_row = 0;     // row r draws from stream first_row + r of the seed
  int32_t first_token = -1;  // -1: uniform over the vocabulary
  int64_t vocab = 0;
};

// Fills `out` (rows of the decoder × T tokens, T at most its length); `each` is told how many tokens of each row are there, or
// were asked for where the decoder draws them itself (then its temperature counts).
void sample_rows(Decoder& decoder, const RowSampling& options, ThreadPool& pool, std::span<int32_t> out,
                 const std::function<void(int64_t)>& each = {});

}  // namespace fairway
