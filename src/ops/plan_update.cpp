// Shape rules of the ops that update parameters and averages, and the named Newton–Schulz coefficients (spec §8.2).
#include <algorithm>

#include "ops/all_ops.h"
#include "ops/chunks.h"

namespace fairway {
namespace {

void require_same_count(const Tensor& a, const Tensor& b, std::string_view op, const char* what) {
  require(a.numel() == b.numel() && a.spec.dtype == b.spec.dtype, op,
          std::string(what) + " must match: " + a.spec.shape.text() + " and " + b.spec.shape.text());
}

void require_scalars(const Tensor& scalars, std::string_view op) {
  require(scalars && scalars.spec.dtype == DType::f64 && scalars.numel() == kStepScalars, op,
          "scalars must be the f64 step scalars");
}

void require_factor(const Tensor& factor, std::string_view op) {
  if (factor) require(factor.spec.dtype == DType::f64 && factor.numel() >= 1, op, "the coefficient must be f64");
}

void require_bank(const Tensor& bank, std::string_view op) {
  require(bank.spec.shape.rank == 3, op, "a bank must be (n, R, C) but is " + bank.spec.shape.text());
}

}  // namespace

OpPlan Fill::plan(const In&) const { return {}; }

OpPlan SumSquares::plan(const In& in) const {
  require(in.totals.spec.dtype == DType::f64 && slot >= 0 && slot < in.totals.numel(), name,
          "slot must be inside of the f64 totals");
  return {.forward_workspace = partials_bytes(1)};
}

OpPlan ClipCoefficient::plan(const In& in) const {
  require(in.totals.spec.dtype == DType::f64 && in.clip.spec.dtype == DType::f64 && in.clip.numel() == 2, name,
          "clip must be f64 (2)");
  return {};
}

OpPlan AccumulateScaled::plan(const In& in) const {
  require_same_count(in.target, in.source, name, "target and source");
  require_factor(in.coefficient, name);
  return {};
}

OpPlan AdamWUpdate::plan(const In& in) const {
  require_same_count(in.param, in.grad, name, "param and grad");
  require_same_count(in.param, in.m, name, "param and m");
  require_same_count(in.param, in.v, name, "param and v");
  require_factor(in.clip, name);
  require_scalars(in.scalars, name);
  return {};
}

OpPlan MuonMomentum::plan(const In& in) const {
  require_bank(in.grad, name);
  require_same_count(in.grad, in.buffer, name, "grad and buffer");
  require_factor(in.clip, name);
  require_scalars(in.scalars, name);
  return {.out = {in.grad.spec}};
}

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

OpPlan MuonApply::plan(const In& in) const {
  require_bank(in.param, name);
  require_same_count(in.param, in.o, name, "param and o");
  require_scalars(in.scalars, name);
  return {};
}

OpPlan Lerp::plan(const In& in) const {
  require_same_count(in.target, in.source, name, "target and source");
  if (slot) require_scalars(in.scalars, name);
  return {};
}

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
