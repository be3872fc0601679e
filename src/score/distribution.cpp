#include "score/distribution.h"

#include <algorithm>
#include <cmath>

#include "base/row_digest.h"

namespace fairway {

uint64_t digest_of(std::span<const float> values) {
  return row_digest::of(static_cast<int64_t>(values.size()), [&](int64_t v) { return values[static_cast<size_t>(v)]; });
}

double Distribution::probability(int32_t token) const {
  return std::min(1.0, std::exp(static_cast<double>(logits[static_cast<size_t>(token)]) - static_cast<double>(lse)));
}

TargetScore finish(const Distribution& d, double nll, int32_t target, std::vector<float>* copy) {
  const size_t count = d.logits.size();
  if (d.tilt.token < 0) {
    if (copy) {
      copy->resize(count);
      for (size_t v = 0; v < count; ++v) (*copy)[v] = d.logits[v] - d.lse;
    }
    const auto value = [&](int64_t v) { return d.logits[static_cast<size_t>(v)] - d.lse; };
    return {static_cast<float>(nll), row_digest::of(static_cast<int64_t>(count), value)};
  }
  const double log_z = std::log1p(d.probability(d.tilt.token) * std::expm1(d.tilt.beta));
  const double total = static_cast<double>(d.lse) + log_z;
  const auto shift = static_cast<float>(total);
  const auto hinted = static_cast<size_t>(d.tilt.token);
  std::vector<float> values(count);
  for (size_t v = 0; v < count; ++v) values[v] = d.logits[v] - shift;
  values[hinted] = static_cast<float>(static_cast<double>(d.logits[hinted]) - total + d.tilt.beta);
  const TargetScore score{static_cast<float>(nll + log_z - (d.tilt.token == target ? d.tilt.beta : 0)), digest_of(values)};
  if (copy) *copy = std::move(values);
  return score;
}

}  // namespace fairway
