#include "score/distribution.h"

#include "base/row_digest.h"

namespace fairway {

uint64_t digest_of(std::span<const float> values) {
  return row_digest::of(static_cast<int64_t>(values.size()), [&](int64_t v) { return values[static_cast<size_t>(v)]; });
}

Distribution Distribution::tilted(const Tilt& by) const {
  Distribution out = *this;
  const int32_t token = by.hint.token;
  if (token >= 0) out.tilt = tilted_row(token, logits[static_cast<size_t>(token)], lse, by.hint.beta, by.damping);
  return out;
}

TargetScore finish(const Distribution& d, double nll, int32_t target, std::vector<float>* copy) {
  const auto value = [&](int64_t v) { return d.tilt.value(v, d.logits[static_cast<size_t>(v)], d.lse); };
  const auto count = static_cast<int64_t>(d.logits.size());
  if (copy) {
    copy->resize(d.logits.size());
    for (int64_t v = 0; v < count; ++v) (*copy)[static_cast<size_t>(v)] = value(v);
  }
  return scored(nll, row_digest::of(count, value), d.tilt, target);
}

}  // namespace fairway
