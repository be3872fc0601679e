#include "score/metric.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace fairway {

double Score::bits_per_byte() const { return bytes > 0 ? nats / std::log(2.0) / static_cast<double>(bytes) : 0; }

int64_t TargetBytes::of(std::span<const uint16_t> stream, int64_t target) const {
  const auto at = static_cast<size_t>(target);
  return tables_ ? tables_->of(stream[at - 1], stream[at]) : counts_[at];
}

double sum_of_block(std::span<const float> nll) {
  double nats = 0;
  for (const float value : nll) nats += static_cast<double>(value);
  return nats;
}

std::vector<int64_t> block_bytes(std::span<const uint16_t> stream, const TargetBytes& bytes) {
  std::vector<int64_t> out;
  for (int64_t target = 1; target < static_cast<int64_t>(stream.size()); ++target) {
    if ((target - 1) % kScoreBlock == 0) out.push_back(0);
    out.back() += bytes.of(stream, target);
  }
  return out;
}

BlockSums sum_blocks(const ScoreLedger& ledger, const TargetBytes& bytes) {
  BlockSums out{.nats = {}, .bytes = block_bytes(ledger.stream(), bytes)};
  std::vector<float> nll;
  for (int64_t first = 1; first <= ledger.targets(); first += kScoreBlock) {
    nll.clear();
    for (int64_t target = first; target < std::min(first + kScoreBlock, ledger.targets() + 1); ++target) {
      if (!ledger.is_scored(target)) throw WorkError(fmt::format("target {} of {} was not scored", target, ledger.targets()));
      if (!std::isfinite(ledger.nll(target)))
        throw WorkError(
            fmt::format("target {} of {} has a loss of {} nats: the model gives no probabilities; its weights have diverged",
                        target, ledger.targets(), ledger.nll(target)));
      nll.push_back(ledger.nll(target));
    }
    out.nats.push_back(sum_of_block(nll));
  }
  return out;
}

Score measure(const BlockSums& blocks, int64_t tokens) {
  Score score{.tokens = tokens};
  for (const double nats : blocks.nats) score.nats += nats;
  for (const int64_t bytes : blocks.bytes) score.bytes += bytes;
  return score;
}

Score measure(const ScoreLedger& ledger, const TargetBytes& bytes) {
  return measure(sum_blocks(ledger, bytes), ledger.targets());
}

int64_t challenge_targets(int64_t tokens, int64_t length) { return tokens > 0 ? (tokens - 1) / length * length : 0; }

}  // namespace fairway
