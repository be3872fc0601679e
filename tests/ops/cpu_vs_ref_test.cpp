// The cpu backend against ref over every case and on every instruction set of the machine, at aligned and odd addresses; and
// the same bits from one thread and from three.
#include "ops/compare.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/cpu_backend.h"
#include "ops/exchanged_types.h"
#include "ops/ref_backend.h"

namespace fairway::ops_test {
namespace {

template <class Op>
class Comparison {
 public:
  Comparison(const OpCase<Op>& example, int64_t offset)
      : example_(example),
        truth_(example, {.offset = offset}),
        one_(example, {.offset = offset}),
        three_(example, {.offset = offset}) {}

  void run() {
    SCOPED_TRACE(example_.label());
    truth_.forward(ref_backend<Op>(), alone_);
    one_.forward(cpu_backend<Op>(), alone_);
    three_.forward(cpu_backend<Op>(), team_);
    compare(&OpRun<Op>::in, "input");  // plain ops write some of them
    compare(&OpRun<Op>::out, "output");
    compare(&OpRun<Op>::saved, "saved");
    if constexpr (Differentiable<Op>)
      for_each_backward(example_, [&](const BackwardSetup& how) {
        truth_.backward(ref_backend<Op>(), how, alone_);
        one_.backward(cpu_backend<Op>(), how, alone_);
        three_.backward(cpu_backend<Op>(), how, team_);
        compare(&OpRun<Op>::din, "gradient");
      });
  }

 private:
  void compare(std::vector<Guarded> OpRun<Op>::*what, const char* name) {
    expect_close(one_.*what, truth_.*what, example_.allowed, name);
    expect_bit_equal(one_.*what, three_.*what, std::string(name) + " of one and three threads");
  }

  const OpCase<Op>& example_;
  Queue alone_{1}, team_{3};
  OpRun<Op> truth_, one_, three_;
};

template <class Op>
void check_every_case() {
  const cpu::KernelTable& usual = cpu::kernels();
  for (const cpu::KernelTable* table : cpu::available_kernels()) {
    SCOPED_TRACE(table->name);
    cpu::use_kernels(*table);
    for (const OpCase<Op>& example : cases(Op{})) {
      Comparison<Op>(example, 1).run();
      if (table == &usual) Comparison<Op>(example, 0).run();
    }
  }
  cpu::use_kernels(usual);
}

#define FAIRWAY_OP(Op) \
  TEST(CpuVsRef, Op) { check_every_case<Op>(); }
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

TEST(CpuVsRef, WhatRanksExchange) {
  check_sums_between_types(cpu_backend<AccumulateScaled>());
  check_updates_in_bf16(cpu_backend<MuonApply>());
}

// Sizes at which every op shares its rows between threads.
template <class Op>
void check_large(const OpCase<Op>& example) {
  Comparison<Op>(example, 0).run();
}

constexpr int64_t kRows = 320, kWidth = 261;
Slot rows() { return uniform({kRows, kWidth}); }

TEST(CpuVsRefLarge, Rows) {
  check_large<RmsNorm>({{.scale = 0.5}, {rows()}});
  check_large<MixNorm>({{.scale = 0.5}, {rows(), rows(), uniform({2, kWidth})}});
  check_large<Add>({{}, {rows(), rows()}});
  check_large<LaneMerge>({{}, {rows(), rows()}});
  check_large<FakeQuant>({{.levels = 31}, {rows()}});
}

TEST(CpuVsRefLarge, Mixing) {
  const Allowed cancels{.nmse = 2e-12};  // column sums of 320 terms
  check_large<SmearGate>({{.row_length = 64}, {rows(), uniform({kWidth})}, cancels});
  check_large<SmearGateInput>({{.row_length = 64}, {indices(kRows, 9), rows(), uniform({12}), uniform({1}, 0.5, 1)}});
  check_large<Skip>({{}, {rows(), rows(), uniform({kWidth}), uniform({kWidth})}, cancels});
  check_large<ValueMix>({{}, {rows(), rows(), uniform({1}, 0.5, 1)}});
  check_large<LaneMix>({{}, {rows(), rows(), rows(), rows(), uniform({2}, 0.5, 1.5), uniform({2, 2}, 0.5, 1.5)}});
}

TEST(CpuVsRefLarge, Heads) {
  const Slot q = uniform({kRows, 256}), k = uniform({kRows, 128});
  check_large<QkNormRope>({{.row_length = 64, .head_dim = 64}, {q, k, uniform({4}, 0.5, 2), rope(64, 16)}});
  check_large<HeadOutput>({{.heads = 4, .kv_heads = 2}, {q, k, absent()}});
  check_large<HeadOutput>({{.heads = 4, .kv_heads = 2}, {q, k, uniform({kRows, 4})}});
  check_large<GateLogits>({{}, {rows(), uniform({4, 12})}});
}

TEST(CpuVsRefLarge, Tables) {
  check_large<Embed>({{}, {indices(600, 40), uniform({40, 130})}});
  check_large<ProjectedEmbed>({{.index = ProjectedEmbed::Index::bigram, .row_length = 150},
                               {indices(600, 40), uniform({33, 66}), uniform({50, 66}), uniform({1}, 0.5, 1)},
                               {.nmse = 1e-10}});  // the gradient of the scale is one number that nearly cancels
}

TEST(CpuVsRefLarge, Documents) {
  check_large<LowRankAdd>(
      {{.scale = 1.8},
       {rows(), rows(), uniform({4, 20, kWidth}, -0.2, 0.2), uniform({4, kWidth, 20}, -0.2, 0.2), uniform({kWidth})}});
  check_large<SegmentTiles>({{.row_length = 60'000}, {segments(60'000, 150)}});
  check_large<PickRows>({{}, {segments(kRows, 4), rows()}});
  check_large<DistributionDigest>({{}, {uniform({kRows, 1031}, -9, 9), uniform({kRows}, 9, 12), absent(), absent()}});
  check_large<DistributionDigest>(
      {{}, {uniform({kRows, 1031}, -9, 9), uniform({kRows}, 9, 12), hints(kRows, 1031), uniform({kRows}, 0, 3)}});
  const Slot offsets = uniform({4, 96}, -0.1, 0.1);
  check_large<OffsetFit>({{.steps = 3},
                          {uniform({1030, 96}), offsets, offsets, uniform({4, 96}, 0.001, 0.1), uniform({1200, 1030}, -9, 9),
                           indices(1200, 1030, -400), indices(1, 9)}});
}

TEST(CpuVsRefLarge, Updates) {
  const int64_t count = 70001;
  const Slot flat = uniform({count});
  check_large<SumSquares>({{.slot = 1}, {flat, uniform_f64({3}, 0, 1)}});
  check_large<AdamWUpdate>(
      {{.learning_rate = 0.03, .weight_decay = 0.1}, {flat, flat, flat, uniform({count}, 0, 1), absent(), step_scalars()}});
  check_large<Lerp>({{.weight = 0.003}, {flat, flat, absent()}});
  check_large<MuonMomentum>({{.row_norm = true}, {uniform({3, 99, 257}), uniform({3, 99, 257}), absent(), step_scalars()}});
}

// More rows than one block of the symmetric products; with one thread matrices are shared out, with three each is split.
TEST(CpuVsRefLarge, NewtonSchulz) {
  for (const char* set : {"ns5", "turbo4"})
    for (const Shape& bank : {Shape{2, 150, 170}, Shape{2, 270, 140}})
      check_large<NewtonSchulz>({newton_schulz_rule(set), {uniform(bank)}, {.nmse = 1e-10}});
}

}  // namespace
}  // namespace fairway::ops_test
