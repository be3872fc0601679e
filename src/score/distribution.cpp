#include "score/distribution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace fairway {
namespace {

constexpr size_t kLanes = 4;  // independent chains, so that multiplications overlap
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;

// A bijection of `state` for each word, so that a change is never lost.
constexpr uint64_t absorb(uint64_t state, uint64_t word) {
  state = (state ^ word) * kMultiplier;
  return state ^ (state >> 32);
}

class Hasher {
 public:
  void add(size_t lane, float low, float high) {
    lanes_[lane] =
        absorb(lanes_[lane], std::bit_cast<uint32_t>(low) | static_cast<uint64_t>(std::bit_cast<uint32_t>(high)) << 32);
  }
  uint64_t value(size_t count) const {
    uint64_t state = absorb(kMultiplier, count);
    for (const uint64_t lane : lanes_) state = absorb(state, lane);
    return state;
  }

 private:
  std::array<uint64_t, kLanes> lanes_{1, 2, 3, 4};
};

// The hash of value(0) … value(count − 1).
template <class ValueAt>
uint64_t hash_values(size_t count, ValueAt value) {
  Hasher hash;
  constexpr size_t kBlock = 2 * kLanes;
  size_t v = 0;
  for (; v + kBlock <= count; v += kBlock)
    for (size_t lane = 0; lane < kLanes; ++lane) hash.add(lane, value(v + 2 * lane), value(v + 2 * lane + 1));
  for (; v < count; ++v) hash.add(v % kLanes, value(v), 0.0f);
  return hash.value(count);
}

}  // namespace

uint64_t digest_of(std::span<const float> values) {
  return hash_values(values.size(), [&](size_t v) { return values[v]; });
}

double Distribution::probability(int32_t token) const {
  return std::min(1.0, std::exp(static_cast<double>(logits[static_cast<size_t>(token)]) - static_cast<double>(lse)));
}

TargetScore finish(const Distribution& d, double nll, int32_t target, std::vector<float>* copy) {
  const size_t count = d.logits.size();
  if (d.tilt.token < 0) {
    const auto value = [&](size_t v) { return d.logits[v] - d.lse; };
    if (copy) {
      copy->resize(count);
      for (size_t v = 0; v < count; ++v) (*copy)[v] = value(v);
    }
    return {static_cast<float>(nll), hash_values(count, value)};
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
