// A row of log-probabilities tilted towards one token (scoring spec §2.7): p'(v) = p(v)·exp(β·[v = g])/Z with Z = 1 +
// p(g)·(exp(β) − 1). β and ln Z are floats, and what follows from them is float arithmetic without products: whoever is told
// the two makes the same values, on any machine. constexpr, so that a device computes with it too.
#pragma once

#include <cmath>
#include <cstdint>

namespace fairway {

struct TiltedRow {
  int32_t token = -1;  // g; −1: nothing is tilted
  float beta = 0, log_z = 0;

  // ln p'(v), from v's logit and the log-sum-exp of all.
  constexpr float value(int64_t v, float logit, float lse) const {
    const float low = logit - (lse + log_z);
    return v == token ? low + beta : low;
  }
  // What the tilt adds to the NLL of a target.
  constexpr double change(int32_t target) const {
    return static_cast<double>(log_z) - (target == token ? static_cast<double>(beta) : 0.0);
  }
};

// From the logit of g. Damping γ weakens hints that the model knows already, by (1 − p(g))^γ: a function of the prefix alone.
// A template, since the functions of <cmath> are not constexpr for every compiler.
template <class Real = double>
constexpr TiltedRow tilted_row(int32_t token, float logit, float lse, float beta, Real damping) {
  if (token < 0) return {};
  const Real chance = std::exp(static_cast<Real>(logit) - static_cast<Real>(lse)), p = chance < 1 ? chance : Real{1};
  const auto weak = damping > 0 ? static_cast<float>(static_cast<Real>(beta) * std::pow(1 - p, damping)) : beta;
  return {token, weak, static_cast<float>(std::log1p(p * std::expm1(static_cast<Real>(weak))))};
}

}  // namespace fairway
