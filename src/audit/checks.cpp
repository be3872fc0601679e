#include "audit/checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace fairway {
namespace {

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

}  // namespace

Finding check_coverage(const ScoreLedger& ledger) {
  for (int64_t target = 1; target <= ledger.targets(); ++target) {
    if (ledger.times_scored(target) != 1)
      return fmt::format("target {} was scored {} times", target, ledger.times_scored(target));
  }
  return std::nullopt;
}

Finding check_normalisation(const ScoreLedger& ledger) {
  for (const auto& [target, values] : ledger.captures()) {
    if (values.empty()) return fmt::format("target {} has no distribution", target);
    double sum = 0;
    for (const float value : values) sum += std::exp(static_cast<double>(value));
    if (!(std::abs(sum - 1) < 1e-5)) return fmt::format("the probabilities of target {} sum to {:.8f}", target, sum);
    const auto token = static_cast<size_t>(ledger.stream()[static_cast<size_t>(target)]);
    const double nll = -static_cast<double>(values[token]);
    if (!(std::abs(nll - static_cast<double>(ledger.nll(target))) < 1e-5))
      return fmt::format("target {} was scored {:.7f}, its distribution says {:.7f}", target, ledger.nll(target), nll);
  }
  return std::nullopt;
}

Finding check_update_order(const ScoreLedger& ledger) {
  std::vector<bool> scored(static_cast<size_t>(ledger.targets()) + 2);
  const auto mark = [&](int64_t begin, int64_t end) { std::fill(scored.begin() + begin, scored.begin() + end, true); };
  int64_t number = 0;
  for (const ScoreEvent& event : ledger.events()) {
    if (event.kind != EventKind::update) mark(event.begin, event.end);
    for (int64_t target = event.begin; target < event.end && event.kind == EventKind::update; ++target) {
      if (!scored[static_cast<size_t>(target)])
        return fmt::format("event {} learned from target {} before its score (state {})", number, target, event.version_before);
    }
    ++number;
  }
  return std::nullopt;
}

Finding check_single_pass(const ScoreLedger& ledger) {
  if (!ledger.broken_rules().empty()) return ledger.broken_rules().front();
  std::vector<uint8_t> times(static_cast<size_t>(ledger.targets()) + 2);
  for (const ScoreEvent& event : ledger.events()) {
    if (event.kind == EventKind::update) continue;
    for (int64_t target = event.begin; target < event.end; ++target) {
      if (++times[static_cast<size_t>(target)] > 1) return fmt::format("target {} is in two SCORE events", target);
    }
  }
  return std::nullopt;
}

Finding check_same_prefix(const ScoreLedger& truth, const ScoreLedger& other, int64_t end) {
  int64_t first = 0;
  double largest = 0;
  for (int64_t target = 1; target < std::min(end, other.targets() + 1); ++target) {
    const bool same = same_bits(truth.nll(target), other.nll(target)) && truth.digest(target) == other.digest(target);
    if (same) continue;
    if (first == 0) first = target;
    largest = std::max(largest, std::abs(static_cast<double>(truth.nll(target)) - static_cast<double>(other.nll(target))));
  }
  if (first == 0) return std::nullopt;
  return fmt::format("target {} differs (state {}), largest difference {:.3g} nats", first, truth.version(first), largest);
}

Finding check_same_distribution(const ScoreLedger& truth, const ScoreLedger& other, int64_t target) {
  if (truth.digest(target) == other.digest(target)) return std::nullopt;
  return fmt::format("the distribution at target {} depends on its token", target);
}

}  // namespace fairway
