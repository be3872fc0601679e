#include "ops/newton_schulz.h"

#include <algorithm>

#include "ops/plan_rules.h"

namespace fairway {

OpPlan NewtonSchulz::plan(const In& in) const {
  require_bank(in.u, name);
  require(steps >= 1 && steps <= kMaxSteps, name, "steps must be 1 to 8");
  const int64_t small = std::min(in.u.dim(1), in.u.dim(2)), large = std::max(in.u.dim(1), in.u.dim(2));
  const size_t elements = static_cast<size_t>(in.u.dim(0) * (2 * small * large + 2 * small * small));
  const double m = static_cast<double>(small), n = static_cast<double>(large);
  return {.out = {in.u.spec},
          .forward_workspace = elements * size_of(in.u.spec.dtype),
          .flops = static_cast<double>(in.u.dim(0)) * steps * (4 * m * m * n + 2 * m * m * m)};
}

// Coefficients of spec §8.2.
NewtonSchulz newton_schulz_rule(std::string_view set) {
  using Triple = std::array<double, 3>;
  static constexpr Triple kNs5{3.4445, -4.7750, 2.0315};
  static constexpr std::array<Triple, 5> kPolar5{{{8.156554524902461, -22.48329292557795, 15.878769915207462},
                                                  {4.042929935166739, -2.808917465908714, 0.5000178451051316},
                                                  {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
                                                  {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
                                                  {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}}};
  static constexpr std::array<Triple, 4> kTurbo4{{{4.107059111542203, -2.9478499167379106, 0.5448431082926601},
                                                  {3.9486908534822946, -2.908902115962949, 0.5518191394370137},
                                                  {3.3184196573706015, -2.488488024314874, 0.51004894012372},
                                                  {2.300652019954817, -1.6689039845747493, 0.4188073119525673}}};
  NewtonSchulz rule;
  const auto take = [&](const auto& coefficients) {
    rule.steps = static_cast<int32_t>(coefficients.size());
    std::copy(coefficients.begin(), coefficients.end(), rule.coefficients.begin());
  };
  if (set == "ns5") {
    take(std::array<Triple, 5>{kNs5, kNs5, kNs5, kNs5, kNs5});
  } else if (set == "polar5") {
    take(kPolar5);
  } else {
    require(set == "turbo4", NewtonSchulz::name,
            "unknown coefficient set '" + std::string(set) + "'; known: ns5, polar5, turbo4");
    take(kTurbo4);
    rule.aol = rule.post_norm_rows = rule.post_norm_columns = true;
  }
  return rule;
}

}  // namespace fairway
