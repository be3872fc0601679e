// The cuda backend in float against ref over every case, at aligned and odd addresses; and the same bits from two runs.
#include "ops/compare.h"
#include "ops/exchanged_types.h"
#include "ops/ref_backend.h"
#include "ops_cuda/cuda_backend.h"

namespace fairway::ops_test {
namespace {

// Sums over all rows are made of float products and partial sums; a gradient that is a single number may nearly cancel.
constexpr double kNoise = 3e-6;

template <class Op>
class Comparison {
 public:
  Comparison(const OpCase<Op>& example, int64_t offset)
      : example_(example),
        truth_(example, {.offset = offset}),
        one_(example, {.offset = offset}),
        two_(example, {.offset = offset}) {}

  void run() {
    SCOPED_TRACE(example_.label());
    truth_.forward(ref_backend<Op>(), queue_);
    one_.forward(cuda_backend<Op>(), queue_);
    two_.forward(cuda_backend<Op>(), queue_);
    compare(&OpRun<Op>::in, "input");  // plain ops write some of them
    compare(&OpRun<Op>::out, "output");
    compare(&OpRun<Op>::saved, "saved");
    if constexpr (Differentiable<Op>)
      for_each_backward(example_, [&](const BackwardSetup& how) {
        truth_.backward(ref_backend<Op>(), how, queue_);
        one_.backward(cuda_backend<Op>(), how, queue_);
        two_.backward(cuda_backend<Op>(), how, queue_);
        compare(&OpRun<Op>::din, "gradient");
      });
  }

 private:
  void compare(std::vector<Guarded> OpRun<Op>::*what, const char* name) {
    Allowed allowed = example_.allowed;
    for (size_t i = 0; i < (truth_.*what).size(); ++i) {
      const Tensor& tensor = (truth_.*what)[i].tensor();
      Allowed here = allowed;
      if (tensor && tensor.numel() <= 4) here.noise = std::max(here.noise, kNoise);
      EXPECT_TRUE(close((one_.*what)[i], (truth_.*what)[i], here)) << name << " " << i;
    }
    expect_bit_equal(one_.*what, two_.*what, std::string(name) + " of two runs");
  }

  const OpCase<Op>& example_;
  Queue queue_{1};
  OpRun<Op> truth_, one_, two_;
};

template <class Op>
void check_every_case() {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  for (const OpCase<Op>& example : cases(Op{})) {
    Comparison<Op>(example, 0).run();
    Comparison<Op>(example, 1).run();
    if (testing::Test::HasFailure()) return;  // one example of what is wrong is enough
  }
}

#define FAIRWAY_OP(Op) \
  TEST(CudaVsRef, Op) { check_every_case<Op>(); }
#define FAIRWAY_PLAIN_OP(Op) FAIRWAY_OP(Op)
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP

TEST(CudaVsRef, WhatRanksExchange) {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  check_sums_between_types(cuda_backend<AccumulateScaled>());
  check_updates_in_bf16(cuda_backend<MuonApply>());
}

// Sizes at which rows are read 16 bytes at a time and shared between many blocks.
template <class Op>
void check_large(const OpCase<Op>& example) {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  Comparison<Op>(example, 0).run();
}

constexpr int64_t kRows = 320, kWidth = 256;
Slot rows() { return uniform({kRows, kWidth}); }

TEST(CudaVsRefLarge, Rows) {
  check_large<RmsNorm>({{.scale = 0.5}, {rows()}});
  check_large<MixNorm>({{.scale = 0.5}, {rows(), rows(), uniform({2, kWidth})}});
  check_large<Skip>({{}, {rows(), rows(), uniform({kWidth}), uniform({kWidth})}, {.nmse = 2e-12}});
  check_large<SmearGate>({{.row_length = 64}, {rows(), uniform({kWidth})}, {.nmse = 2e-12}});
  check_large<LaneMix>({{}, {rows(), rows(), rows(), rows(), uniform({2}, 0.5, 1.5), uniform({2, 2}, 0.5, 1.5)}});
}

TEST(CudaVsRefLarge, Heads) {
  const Slot q = uniform({kRows, 256}), k = uniform({kRows, 128});
  check_large<QkNormRope>({{.row_length = 64, .head_dim = 64}, {q, k, uniform({4}, 0.5, 2), rope(64, 16)}});
  check_large<HeadOutput>({{.heads = 4, .kv_heads = 2}, {q, k, absent()}});
  check_large<HeadOutput>({{.heads = 4, .kv_heads = 2}, {q, k, uniform({kRows, 4})}});
  check_large<GateLogits>({{}, {rows(), uniform({4, 12})}});
  check_large<Attention>(
      {{.row_length = 160, .heads = 4, .kv_heads = 2, .scale = 0.125}, {q, k, k, absent(), absent(), absent()}});
}

TEST(CudaVsRefLarge, Tables) {
  check_large<Embed>({{}, {indices(1400, 3), uniform({3, 136})}});
  check_large<ProjectedEmbed>({{.index = ProjectedEmbed::Index::bigram, .row_length = 150},
                               {indices(600, 40), uniform({33, 64}), uniform({48, 64}), uniform({1}, 0.5, 1)},
                               {.nmse = 1e-10}});
}

TEST(CudaVsRefLarge, Documents) {
  const Slot down = uniform({4, 16, kWidth}, -0.2, 0.2), up = uniform({4, kWidth, 16}, -0.2, 0.2);
  check_large<LowRankAdd>({{.scale = 1.8}, {rows(), rows(), down, up, uniform({kWidth})}});
  check_large<SegmentTiles>({{.row_length = 98'304}, {segments(98'304, 40)}});  // runs of more tiles than planning threads
  check_large<SegmentTiles>({{.row_length = 98'304}, {segments(98'304, 2, 60'000)}});
  check_large<PickRows>({{}, {segments(kRows, 4), rows()}});
  check_large<DistributionDigest>({{}, {uniform({kRows, 1031}, -9, 9), uniform({kRows}, 9, 12), absent(), absent()}});
  check_large<DistributionDigest>(
      {{}, {uniform({kRows, 1031}, -9, 9), uniform({kRows}, 9, 12), hints(kRows, 1031), uniform({kRows}, 0, 3)}});
  const Slot offsets = uniform({4, 96}, -0.1, 0.1);
  check_large<OffsetFit>({{.steps = 3},
                          {uniform({1030, 96}), offsets, offsets, uniform({4, 96}, 0.001, 0.1), uniform({1200, 1030}, -9, 9),
                           indices(1200, 1030, -400), indices(1, 9)}});
}

TEST(CudaVsRefLarge, NewtonSchulz) {
  for (const char* set : {"ns5", "turbo4"})
    for (const Shape& bank : {Shape{2, 150, 170}, Shape{2, 270, 140}})
      check_large<NewtonSchulz>({newton_schulz_rule(set), {uniform(bank)}, {.nmse = 1e-10}});
}

}  // namespace
}  // namespace fairway::ops_test
