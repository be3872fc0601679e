// Bits per byte from a ledger's records (scoring spec §1): sums in double, in the order of the stream, whoever scored when.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "score/ledger.h"
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

// Bytes of each target: from the tokenizer's tables, or as a file beside the shards tells them (scoring spec §1.7).
class TargetBytes {
 public:
  explicit TargetBytes(const ByteTables& tables) : tables_(&tables) {}
  explicit TargetBytes(std::span<const uint16_t> counts) : counts_(counts) {}  // of every token of the stream

  int64_t of(std::span<const uint16_t> stream, int64_t target) const;

 private:
  const ByteTables* tables_ = nullptr;
  std::span<const uint16_t> counts_;
};

// What a score is summed from. Blocks of kScoreBlock targets are summed one by one and then added, so that the sums of the
// blocks alone give the score to the last bit: a receipt keeps them, 237 for the 62 million targets of sp1024's FineWeb.
inline constexpr int64_t kScoreBlock = int64_t{1} << 18;
struct BlockSums {
  std::vector<double> nats;
  std::vector<int64_t> bytes;
  bool operator==(const BlockSums&) const = default;
};
double sum_of_block(std::span<const float> nll);
std::vector<int64_t> block_bytes(std::span<const uint16_t> stream, const TargetBytes& bytes);
// WorkError where a target has no score, or one that is no number.
BlockSums sum_blocks(const ScoreLedger& ledger, const TargetBytes& bytes);
Score measure(const BlockSums& blocks, int64_t tokens);
Score measure(const ScoreLedger& ledger, const TargetBytes& bytes);

// floor((n − 1)/length)·length targets: what the challenge keeps of n tokens (scoring spec §1.5).
int64_t challenge_targets(int64_t tokens, int64_t length);

}  // namespace fairway
