// The f32 form of ref against its f64 form, over every case: guards intact, inputs untouched, accumulation, absent gradients.
#include <cmath>

#include "ops/compare.h"
#include "ops/ref_backend.h"

namespace fairway::ops_test {
namespace {

template <class Op>
void check_case(const OpCase<Op>& example) {
  SCOPED_TRACE(example.label());
  Queue queue(1);
  const auto backend = ref_backend<Op>();
  OpRun<Op> single(example, {.dtype = DType::f32, .offset = 1}), twice(example, {.dtype = DType::f64});
  single.forward(backend, queue);
  twice.forward(backend, queue);
  expect_close(single.in, twice.in, example.allowed, "input");  // plain ops write some of them
  expect_close(single.out, twice.out, example.allowed, "output");
  expect_close(single.saved, twice.saved, example.allowed, "saved");
  if constexpr (Differentiable<Op>)
    for_each_backward(example, [&](const BackwardSetup& how) {
      single.backward(backend, how, queue);
      twice.backward(backend, how, queue);
      expect_close(single.din, twice.din, example.allowed, "gradient");
    });
}

// Both precisions share the code that adds, so what "accumulate" and an unwanted gradient mean is checked on its own.
template <class Op>
void check_gradient_semantics(const OpCase<Op>& example) {
  SCOPED_TRACE(example.label());
  Queue queue(1);
  const auto backend = ref_backend<Op>();
  OpRun<Op> run(example, {.dtype = DType::f64});
  run.forward(backend, queue);
  run.backward(backend, {}, queue);
  std::vector<std::vector<double>> plain;
  for (const Guarded& gradient : run.din) plain.push_back(gradient.values());
  run.backward(backend, {.accumulate = true}, queue);
  for (size_t i = 0; i < run.din.size(); ++i) {
    const auto sums = run.din[i].values(), held = content_of(uniform(example.in[i].shape), accumulated_seed(i));
    for (size_t j = 0; j < sums.size(); ++j)
      ASSERT_NEAR(sums[j], held[j] + plain[i][j], 1e-12 * (1 + std::abs(plain[i][j]))) << "input " << i << " element " << j;
  }
  for (size_t unwanted = 0; unwanted < run.din.size(); ++unwanted) {
    run.backward(backend, {.unwanted_din = unwanted}, queue);
    for (size_t i = 0; i < run.din.size(); ++i) {
      if (i == unwanted) continue;
      EXPECT_EQ(run.din[i].values(), plain[i]) << "input " << i << " without " << unwanted;
    }
  }
}

template <class Op>
void check_precision() {
  const auto list = cases(Op{});
  EXPECT_FALSE(list.empty()) << "an op without cases is not tested at all";
  for (const OpCase<Op>& example : list) {
    check_case(example);
    if constexpr (Differentiable<Op>) check_gradient_semantics(example);
  }
}

#define FAIRWAY_OP(Op) \
  TEST(RefPrecision, Op) { check_precision<Op>(); }
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace
}  // namespace fairway::ops_test
