// The cpu backend against ref over every case, forward and every way of asking for gradients, aligned and not; and against
// itself with 1, 2 and 3 threads, bit for bit.
#include "ops/compare.h"
#include "ops/cpu/cpu.h"
#include "ops/ref_backend.h"

namespace fairway::ops_test {
namespace {

template <class Op>
BackendUnderTest<Op> cpu_backend() {
  if constexpr (Differentiable<Op>)
    return {"cpu", &cpu::forward, &cpu::backward};
  else
    return {"cpu", &cpu::forward, nullptr};
}

template <class Op>
void compare_case(const OpCase<Op>& example, int64_t offset, Queue& queue) {
  SCOPED_TRACE(example.label() + (offset ? ", unaligned" : ""));
  OpRun<Op> candidate(example, {.offset = offset}), truth(example, {});
  candidate.forward(cpu_backend<Op>(), queue);
  truth.forward(ref_backend<Op>(), queue);
  expect_close(candidate.in, truth.in, example.allowed, "input");  // plain ops write some of them
  expect_close(candidate.out, truth.out, example.allowed, "output");
  expect_close(candidate.saved, truth.saved, example.allowed, "saved");
  if constexpr (Differentiable<Op>)
    for_each_backward(example, [&](const BackwardSetup& how) {
      candidate.backward(cpu_backend<Op>(), how, queue);
      truth.backward(ref_backend<Op>(), how, queue);
      expect_close(candidate.din, truth.din, example.allowed, how.accumulate ? "added gradient" : "gradient");
    });
}

template <class Op>
void compare_with_ref() {
  Queue queue(2);
  for (const OpCase<Op>& example : cases(Op{}))
    for (int64_t offset : {0, 1}) compare_case(example, offset, queue);
}

template <class Op>
void compare_threads() {
  Queue one(1), two(2), three(3);
  for (const OpCase<Op>& example : cases(Op{})) {
    SCOPED_TRACE(example.label());
    OpRun<Op> reference(example, {});
    reference.forward(cpu_backend<Op>(), one);
    if constexpr (Differentiable<Op>) reference.backward(cpu_backend<Op>(), {}, one);
    for (Queue* queue : {&two, &three}) {
      OpRun<Op> run(example, {});
      run.forward(cpu_backend<Op>(), *queue);
      if constexpr (Differentiable<Op>) run.backward(cpu_backend<Op>(), {}, *queue);
      expect_bit_equal(run.in, reference.in, "input");
      expect_bit_equal(run.out, reference.out, "output");
      expect_bit_equal(run.saved, reference.saved, "saved");
      expect_bit_equal(run.din, reference.din, "gradient");
    }
  }
}

#define FAIRWAY_OP(Op)                               \
  TEST(CpuVersusRef, Op) { compare_with_ref<Op>(); } \
  TEST(CpuThreads, Op) { compare_threads<Op>(); }
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

}  // namespace
}  // namespace fairway::ops_test
