// Every gradient of ref against central differences of a random linear functional of the outputs, in double.
#include <algorithm>
#include <cmath>

#include "ops/ref_backend.h"

namespace fairway::ops_test {
namespace {

constexpr double kStep = 2e-4;
constexpr double kTolerance = 1e-6;
constexpr size_t kSampled = 16;          // elements tried of each input
constexpr int64_t kMostElements = 3000;  // larger cases are for the comparison of backends
constexpr RunSetup kDouble{.dtype = DType::f64};

template <class Op>
double functional(OpRun<Op>& run, Queue& queue) {
  run.forward(ref_backend<Op>(), queue);
  double total = 0;
  for (size_t i = 0; i < run.out.size(); ++i) {
    if (!carries_gradient<Op>(i)) continue;
    const auto y = run.out[i].values(), weights = run.dout[i].values();
    for (size_t j = 0; j < y.size(); ++j) total += y[j] * weights[j];
  }
  return total;
}

// Four-point central difference along one element.
template <class Op>
double difference(OpRun<Op>& run, size_t input, size_t element, Queue& queue) {
  const std::vector<double> original = run.in[input].values();
  const auto at = [&](double shift) {
    std::vector<double> moved = original;
    moved[element] += shift;
    run.in[input].set(moved);
    return functional(run, queue);
  };
  const double near = at(kStep) - at(-kStep), far = at(2 * kStep) - at(-2 * kStep);
  run.in[input].set(original);
  return (8 * near - far) / (12 * kStep);
}

template <class Op>
void check_case(const OpCase<Op>& example) {
  Queue queue(1);
  OpRun<Op> run(example, kDouble);
  run.forward(ref_backend<Op>(), queue);
  run.backward(ref_backend<Op>(), {}, queue);
  for (size_t input = 0; input < run.in.size(); ++input) {
    const std::vector<double> gradient = run.din[input].values();
    double power = 0;
    for (double g : gradient) power += g * g;
    const double rms = std::sqrt(power / static_cast<double>(std::max<size_t>(1, gradient.size())));
    const size_t stride = std::max<size_t>(1, gradient.size() / kSampled);
    for (size_t element = 0; element < gradient.size(); element += stride) {
      const double expected = difference(run, input, element, queue), error = std::abs(gradient[element] - expected);
      const double scale = std::max({std::abs(expected), rms, 1e-3});
      ASSERT_FALSE(!(error <= kTolerance * scale)) << example.label() << ": input " << input << " element " << element << " is "
                                                   << gradient[element] << ", differences give " << expected;
    }
  }
}

// Rounding has no useful derivative: its gradient is defined as that of the identity, also where weights are clamped.
template <>
void check_case(const OpCase<FakeQuant>& example) {
  Queue queue(1);
  OpRun<FakeQuant> run(example, kDouble);
  run.forward(ref_backend<FakeQuant>(), queue);
  run.backward(ref_backend<FakeQuant>(), {}, queue);
  EXPECT_EQ(run.din[0].values(), run.dout[0].values()) << example.label();
  run.backward(ref_backend<FakeQuant>(), {.accumulate = true}, queue);
  const std::vector<double> before = content_of(uniform(example.in[0].shape), accumulated_seed(0));
  const std::vector<double> after = run.din[0].values(), g = run.dout[0].values();
  for (size_t i = 0; i < g.size(); ++i) ASSERT_EQ(after[i], before[i] + g[i]) << example.label() << ": element " << i;
}

template <class Op>
void check_gradients() {
  int checked = 0;
  for (const OpCase<Op>& example : cases(Op{})) {
    int64_t elements = 0;
    for (const Slot& slot : example.in) elements += slot.content == Content::absent ? 0 : slot.shape.numel();
    if (elements > kMostElements) continue;
    check_case(example);
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

#define FAIRWAY_OP(Op) \
  TEST(Gradient, Op) { check_gradients<Op>(); }
#define FAIRWAY_PLAIN_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace
}  // namespace fairway::ops_test
