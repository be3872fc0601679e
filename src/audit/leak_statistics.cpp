#include "audit/leak_statistics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace fairway {
namespace {

// The held targets are those of the last context before the cut: what lies further back no window shows the future to.
double gain_at(AuditRuns& runs, const ScoreLedger& truth, int64_t context, int64_t cut, Rng& rng) {
  std::vector<uint16_t> changed(truth.stream().begin(), truth.stream().end());
  for (size_t i = changed.size() - 1; i > static_cast<size_t>(cut); --i)
    std::swap(changed[i], changed[static_cast<size_t>(cut) + rng.below(i - static_cast<size_t>(cut) + 1)]);
  const ScoreLedger other = runs.run(changed);
  const int64_t first = std::max<int64_t>(1, cut - context);
  double sum = 0;
  for (int64_t target = first; target < cut; ++target)
    sum += static_cast<double>(other.nll(target)) - static_cast<double>(truth.nll(target));
  return sum / static_cast<double>(cut - first);
}

}  // namespace

LeakEstimate estimate_leak(AuditRuns& runs, const ScoreLedger& truth, int64_t context, int64_t cuts, uint64_t seed) {
  Rng rng(seed, 12);
  std::vector<double> gains;
  const int64_t least = std::min(context / 2, truth.targets() / 2) + 1;  // some targets are held
  for (int64_t i = 0; i < cuts; ++i) {
    const int64_t cut =
        least + static_cast<int64_t>(rng.below(static_cast<uint64_t>(std::max<int64_t>(1, truth.targets() - least))));
    gains.push_back(gain_at(runs, truth, context, cut, rng));
  }
  LeakEstimate out{.cuts = cuts};
  for (const double gain : gains) out.gain += gain / static_cast<double>(cuts);
  double squares = 0;
  for (const double gain : gains) squares += (gain - out.gain) * (gain - out.gain);
  out.sigma = std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, cuts * (cuts - 1))));
  return out;
}

std::string sentence_of(const LeakEstimate& estimate) {
  return fmt::format("the true future saves {:.3g} ± {:.2g} nats per target over {} cuts: {}", estimate.gain, estimate.sigma,
                     estimate.cuts,
                     estimate.leak() ? "a leak" : "no more than chance, so the evaluator may only not repeat its bits");
}

}  // namespace fairway
