#include "score/metric.h"

#include <fmt/core.h>

#include <cmath>

namespace fairway {

double Score::bits_per_byte() const { return bytes > 0 ? nats / std::log(2.0) / static_cast<double>(bytes) : 0; }

int64_t TargetBytes::of(std::span<const uint16_t> stream, int64_t target) const {
  const auto at = static_cast<size_t>(target);
  return tables_ ? tables_->of(stream[at - 1], stream[at]) : counts_[at];
}

Score measure(const ScoreLedger& ledger, const TargetBytes& bytes) {
  Score score{.tokens = ledger.targets()};
  for (int64_t target = 1; target <= ledger.targets(); ++target) {
    if (!ledger.is_scored(target)) throw WorkError(fmt::format("target {} of {} was not scored", target, ledger.targets()));
    const auto nats = static_cast<double>(ledger.nll(target));
    if (!std::isfinite(nats))
      throw WorkError(
          fmt::format("target {} of {} has a loss of {} nats: the model gives no probabilities; its weights have diverged",
                      target, ledger.targets(), nats));
    score.nats += nats;
    score.bytes += bytes.of(ledger.stream(), target);
  }
  return score;
}

int64_t challenge_targets(int64_t tokens, int64_t length) { return tokens > 0 ? (tokens - 1) / length * length : 0; }

}  // namespace fairway
