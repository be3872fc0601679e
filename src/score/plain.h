// Plain scoring (scoring spec §1, §2.1): disjoint windows of T tokens, every target once, sums in double.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "score/eval_model.h"
#include "tokenizer/byte_tables.h"

namespace fairway {

struct Score {
  int64_t tokens = 0;  // targets scored
  int64_t bytes = 0;
  double nats = 0;
  double seconds = 0;
  double loss() const { return tokens > 0 ? nats / static_cast<double>(tokens) : 0; }
  double bits_per_byte() const;
};

using ScoreProgress = std::function<void(int64_t done, int64_t total)>;

// `stream` is truncated to floor((n−1)/T)·T targets, as the challenge does. InputError when that leaves none or a token is past
// the model's vocabulary.
Score score_plain(EvalModel& model, std::span<const uint16_t> stream, const ByteTables& bytes, int64_t vocab,
                  const ScoreProgress& progress = {});

}  // namespace fairway
