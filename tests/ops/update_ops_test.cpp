// The ops that update parameters and averages, against numbers worked out by hand.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/direct_call.h"

namespace fairway::ops_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

MATCHER_P(NearTo, tolerance, "") { return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance; }

std::vector<double> scalars(double lr_scale, double momentum, double step, double swa) {
  std::vector<double> values(kStepScalars, 0.0);
  values[static_cast<size_t>(StepScalar::learning_rate_scale)] = lr_scale;
  values[static_cast<size_t>(StepScalar::momentum)] = momentum;
  values[static_cast<size_t>(StepScalar::adam_step)] = step;
  values[static_cast<size_t>(StepScalar::swa_weight)] = swa;
  return values;
}

TEST(UpdateOps, AdamWTwoStepsByHand) {
  const AdamWUpdate op{.learning_rate = 0.1, .weight_decay = 0.5, .beta1 = 0.9, .beta2 = 0.96, .eps = 0.25};
  const Guarded param = doubles({1}, {2}), grad = doubles({1}, {6}), m = doubles({1}, {0}), v = doubles({1}, {0});
  const Guarded clip = doubles({2}, {0.5, 99});
  Guarded steps = doubles({kStepScalars}, scalars(0.5, 0, 1, 0));
  const AdamWUpdate::In in{param.tensor(), grad.tensor(), m.tensor(), v.tensor(), clip.tensor(), steps.tensor()};
  // lr = 0.05, g = 3: m = 0.3, m̂ = 3; v = 0.36, √v/√0.04 = 3; p = 2·0.975 − 0.05·3/3.25.
  call(op, in);
  EXPECT_THAT(m.values(), ElementsAre(DoubleNear(0.3, 1e-15)));
  EXPECT_THAT(v.values(), ElementsAre(DoubleNear(0.36, 1e-15)));
  const double first = 1.95 - 0.15 / 3.25;
  EXPECT_THAT(param.values(), ElementsAre(DoubleNear(first, 1e-14)));
  // Full rate, no clipping: m = 0.27 + 0.6 = 0.87, m̂ = 0.87/0.19; v = 0.3456 + 1.44 = 1.7856, corrected by 1 − 0.9216.
  steps.set(scalars(1, 0, 2, 0));
  call(op, {param.tensor(), grad.tensor(), m.tensor(), v.tensor(), {}, steps.tensor()});
  const double second = first * 0.95 - 0.1 * (0.87 / 0.19) / (std::sqrt(1.7856 / 0.0784) + 0.25);
  EXPECT_THAT(param.values(), ElementsAre(DoubleNear(second, 1e-14)));
}

TEST(UpdateOps, SumOfSquaresClipAndNorm) {
  const Guarded x = doubles({3}, {1, -2, 4}), totals = doubles({2}, {4, -1}), clip = doubles({2}, {0, 0});
  call(SumSquares{.slot = 1}, {x.tensor(), totals.tensor()});
  EXPECT_THAT(totals.values(), ElementsAre(4, 21));
  call(ClipCoefficient{.max_norm = 1}, {totals.tensor(), clip.tensor()});
  EXPECT_THAT(clip.values(), ElementsAre(DoubleNear(1 / 5.000001, 1e-15), 5));
  call(ClipCoefficient{.max_norm = 6}, {totals.tensor(), clip.tensor()});
  EXPECT_THAT(clip.values(), ElementsAre(1, 5));
  call(ClipCoefficient{.max_norm = 0}, {totals.tensor(), clip.tensor()});
  EXPECT_THAT(clip.values(), ElementsAre(1, 5));
}

TEST(UpdateOps, FillAccumulateAndLerp) {
  const Guarded target = doubles({2}, {8, -4}), source = doubles({2}, {2, 6}), factor = doubles({2}, {0.5, 7});
  call(AccumulateScaled{.factor = 3}, {target.tensor(), source.tensor(), factor.tensor()});
  EXPECT_THAT(target.values(), ElementsAre(11, 5));
  call(Lerp{.weight = 0.25}, {target.tensor(), source.tensor(), {}});
  EXPECT_THAT(target.values(), ElementsAre(8.75, 5.25));
  const Guarded steps = doubles({kStepScalars}, scalars(1, 0, 1, 0.5));
  call(Lerp{.weight = 0.25, .slot = StepScalar::swa_weight}, {target.tensor(), source.tensor(), steps.tensor()});
  EXPECT_THAT(target.values(), ElementsAre(5.375, 5.625));
  call(Fill{.value = NAN}, {target.tensor()});
  call(AccumulateScaled{.factor = 3, .overwrite = true}, {target.tensor(), source.tensor(), {}});
  EXPECT_THAT(target.values(), ElementsAre(6, 18)) << "overwriting must not read what was there";
  call(Fill{.value = 1.5}, {target.tensor()});
  EXPECT_THAT(target.values(), ElementsAre(1.5, 1.5));
}

TEST(UpdateOps, AccumulateRoundsToBf16) {
  const Guarded target = doubles({3}, {1, 256, -3}), source = doubles({3}, {0x1p-7, 1.0, 0x1p-9});
  call(AccumulateScaled{.round = true}, {target.tensor(), source.tensor(), {}});
  EXPECT_THAT(target.values(), ElementsAre(1.0078125, 256, -3)) << "257 is a tie and 256 even";
}

TEST(UpdateOps, MuonMomentumLooksAheadAndNormalisesRows) {
  const Guarded grad = doubles({1, 2, 2}, {6, 8, 0, 0}), buffer = doubles({1, 2, 2}, {10, 0, 0, 0}), clip = doubles({1}, {0.5});
  const Guarded steps = doubles({kStepScalars}, scalars(1, 0.5, 1, 0));
  const MuonMomentum::In in{grad.tensor(), buffer.tensor(), clip.tensor(), steps.tensor()};
  EXPECT_THAT(call(MuonMomentum{}, in)[0], ElementsAre(7, 6, 0, 0));  // g = (3, 4), buffer = (8, 4)
  EXPECT_THAT(buffer.values(), ElementsAre(8, 4, 0, 0));
  // g = (3, 4), buffer = (7, 6), u = (6.5, 7); the row of zeros stays zero.
  const double norm = std::hypot(6.5, 7);
  EXPECT_THAT(call(MuonMomentum{.row_norm = true}, in)[0],
              ElementsAre(DoubleNear(6.5 / norm, 1e-15), DoubleNear(7 / norm, 1e-15), 0, 0));
}

TEST(UpdateOps, MuonApplyScalesTallMatricesOnly) {
  const Guarded steps = doubles({kStepScalars}, scalars(0.5, 0, 1, 0));
  const MuonApply op{.learning_rate = 0.2, .weight_decay = 2};  // lr 0.1: decay 0.8
  const Guarded tall = doubles({1, 4, 1}, {1, 2, 3, 4}), wide = doubles({1, 1, 4}, {1, 2, 3, 4}),
                o = doubles({4}, {1, 1, 0, -1});
  call(op, {tall.tensor(), o.tensor(), steps.tensor()});
  EXPECT_THAT(tall.values(), Pointwise(NearTo(1e-15), {0.6, 1.4, 2.4, 3.4}));
  call(op, {wide.tensor(), o.tensor(), steps.tensor()});
  EXPECT_THAT(wide.values(), Pointwise(NearTo(1e-15), {0.7, 1.5, 2.4, 3.3}));
}

}  // namespace
}  // namespace fairway::ops_test
