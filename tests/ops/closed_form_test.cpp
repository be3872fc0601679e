// Values of differentiable ops that can be worked out by hand: the hash, the quantization grid, edges of sequences.
#include <gmock/gmock.h>

#include <cmath>

#include "ops/direct_call.h"

namespace fairway::ops_test {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(BigramRow, MatchesTheVectorsOfTheSpec) {
  struct Vector {
    int64_t token, previous, of2048, of3072, of4096;
  };
  const std::vector<Vector> vectors{{7, 5, 1082, 2085, 1051},     {1, 1023, 310, 893, 1697}, {1023, 1, 752, 846, 3965},
                                    {512, 512, 1538, 2730, 2303}, {0, 0, 0, 0, 0},           {1, 1, 11, 1025, 2044}};
  for (const Vector& v : vectors) {
    EXPECT_EQ(bigram_row(v.token, v.previous, 2048), v.of2048);
    EXPECT_EQ(bigram_row(v.token, v.previous, 3072), v.of3072);
    EXPECT_EQ(bigram_row(v.token, v.previous, 4096), v.of4096);
  }
}

TEST(ProjectedEmbed, FirstPositionOfEachSequenceTakesTheLastRow) {
  const Guarded tokens = integers({3, 5, 5, 3}), table = doubles({4, 1}, {10, 20, 30, 40});
  const Guarded proj = doubles({1, 1}, {1}), scale = doubles({1}, {0.5});
  const ProjectedEmbed op{.index = ProjectedEmbed::Index::bigram, .row_length = 2};
  const double second = 5 + 5 * static_cast<double>(bigram_row(5, 3, 4)),
               fourth = 5 + 5 * static_cast<double>(bigram_row(3, 5, 4));
  EXPECT_THAT(call(op, {tokens.tensor(), table.tensor(), proj.tensor(), scale.tensor()})[0],
              ElementsAre(20, second, 20, fourth));
}

TEST(FakeQuant, RoundsHalvesToEvenOnTheRowsGrid) {
  // levels 4 and absmax 8: step 2, so 1, 3, 5 and 7 are ties.
  const Guarded weight = doubles({2, 6}, {8, 1, 3, -5, 7, 0.9, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(call(FakeQuant{.levels = 4}, {weight.tensor()})[0], ElementsAre(8, 0, 4, -4, 8, 0, 0, 0, 0, 0, 0, 0));
}

TEST(FakeQuant, FloorOfTheStepCoarsensSmallRows) {
  const Guarded weight = doubles({1, 4}, {0.3, 0.1, -0.26, 0.25});
  EXPECT_THAT(call(FakeQuant{.levels = 31, .scale_floor = 0.5}, {weight.tensor()})[0], ElementsAre(0.5, 0, -0.5, 0));
}

TEST(FakeQuant, ReachesToDeviationsOfTheRow) {
  // Scoring spec §11.3: s = 12.85·0.1683322/31, as a half 0.06976318; levels 1 −1 3 −4 1 0 2 −2.
  const Guarded weight = doubles({1, 8}, {.10, -.05, .22, -.31, .07, 0, .15, -.12});
  const double s = 0.06976318359375;
  EXPECT_THAT(call(FakeQuant{.levels = 31, .deviations = 12.85, .half_step = true}, {weight.tensor()})[0],
              ElementsAre(s, -s, 3 * s, -4 * s, s, 0, 2 * s, -2 * s));
}

TEST(FakeQuant, RowsWithoutDeviationReachToTheirLargest) {
  const Guarded weight = doubles({2, 3}, {0.5, 0.5, 0.5, 0, 0, 0});
  EXPECT_THAT(call(FakeQuant{.levels = 2, .deviations = 3}, {weight.tensor()})[0], ElementsAre(0.5, 0.5, 0.5, 0, 0, 0));
  const Guarded one = doubles({1, 1}, {-0.25});
  EXPECT_THAT(call(FakeQuant{.levels = 2, .deviations = 3}, {one.tensor()})[0], ElementsAre(-0.25));
}

TEST(FakeQuant, GradientPassesThrough) {
  const Guarded weight = doubles({1, 3}, {0.3, 7, -2}), g = doubles({1, 3}, {1, -2, 5}),
                dweight = doubles({1, 3}, {10, 10, 10});
  Tensor added = dweight.tensor();
  added.accumulate = true;
  ref::backward(FakeQuant{}, {.in = {weight.tensor()}, .out = {}, .saved = {}, .dout = {g.tensor()}, .din = {added}});
  EXPECT_THAT(dweight.values(), ElementsAre(11, 8, 15));
}

TEST(SmearGate, SequencesDoNotLeak) {
  const Guarded u = doubles({4, 1}, {1, 2, 4, 8}), gate = doubles({1}, {0});  // σ(0) = ½
  EXPECT_THAT(call(SmearGate{.row_length = 2}, {u.tensor(), gate.tensor()})[0], ElementsAre(0.5, 1.5, 2, 6));
}

TEST(SmearGateInput, NeitherSequencesNorDocumentsLeak) {
  const Guarded tokens = integers({9, 9, 1, 9}), e = doubles({4, 1}, {1, 2, 4, 8}), zero = doubles({1}, {0}),
                two = doubles({1}, {2});
  const SmearGateInput::In in{tokens.tensor(), e.tensor(), zero.tensor(), two.tensor()};
  EXPECT_THAT(call(SmearGateInput{.row_length = 4, .bos = 1}, in)[0], ElementsAre(1, 3, 4, 12));
  EXPECT_THAT(call(SmearGateInput{.row_length = 1, .bos = 1}, in)[0], ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(call(SmearGateInput{.row_length = 4, .bos = SmearGateInput::kNoToken}, in)[0], ElementsAre(1, 3, 6, 12));
}

TEST(Attention, AveragesTheVisibleRows) {
  const Guarded zeros = doubles({4, 1}, {0, 0, 0, 0}), v = doubles({4, 1}, {1, 3, 5, 9}), starts = integers({0, 0, 2, 2});
  const Attention op{.row_length = 4, .heads = 1, .kv_heads = 1, .scale = 1};
  EXPECT_THAT(call(op, {zeros.tensor(), zeros.tensor(), v.tensor(), {}, {}})[0],
              ElementsAre(1, DoubleNear(2, 1e-15), DoubleNear(3, 1e-15), DoubleNear(4.5, 1e-15)));
  EXPECT_THAT(call(op, {zeros.tensor(), zeros.tensor(), v.tensor(), starts.tensor(), {}, {}})[0],
              ElementsAre(1, DoubleNear(2, 1e-15), 5, DoubleNear(7, 1e-15)));
}

// 70 tokens, then 130: the second document begins a tile of its own and goes on in another, which is taken first.
TEST(SegmentTiles, LongDocumentsBeginTheirOwn) {
  std::vector<double> start(200, 0);
  std::fill(start.begin() + 70, start.end(), 70);
  const std::vector<double> out = call(SegmentTiles{.row_length = 200}, {integers(start).tensor()})[0];
  const SegmentTilesLayout at(200, 200);
  const auto part = [&](int64_t from, int64_t count) {
    return std::vector<double>(out.begin() + from, out.begin() + from + count);
  };
  EXPECT_THAT(part(at.count(), 1), ElementsAre(3));
  EXPECT_THAT(part(at.tiles(), 12), ElementsAre(0, 70, 0, 1, 70, 198, 0, 2, 198, 200, 1, 1));
  EXPECT_THAT(part(at.order(), 3), ElementsAre(2, 1, 0));
  EXPECT_THAT(part(at.ends() + 69, 2), ElementsAre(70, 200));
  EXPECT_THAT(part(at.slots() + 69, 2), ElementsAre(69, 128));
  EXPECT_EQ(out[static_cast<size_t>(at.slots() + 199)], 257);
}

TEST(HeadOutput, SubtractsTheOwnValueAndSurvivesAZeroOne) {
  const Guarded y = doubles({2, 2}, {3, 5, 3, 5}), v = doubles({2, 2}, {2, 0, 0, 0});
  EXPECT_THAT(call(HeadOutput{.heads = 1, .kv_heads = 1}, {y.tensor(), v.tensor(), {}})[0], ElementsAre(0, 5, 3, 5));
}

TEST(HeadOutput, AGateOfNothingIsHalfOpen) {
  const Guarded y = doubles({1, 2}, {3, 5}), v = doubles({1, 2}, {2, 0}), logit = doubles({1, 1}, {0});
  EXPECT_THAT(call(HeadOutput{.heads = 1, .kv_heads = 1}, {y.tensor(), v.tensor(), logit.tensor()})[0], ElementsAre(0, 2.5));
}

TEST(GateLogits, ReadTheFirstColumns) {
  const Guarded a = doubles({1, 3}, {7, 2, 100}), gate = doubles({2, 2}, {1, 10, 0, -1});
  EXPECT_THAT(call(GateLogits{}, {a.tensor(), gate.tensor()})[0], ElementsAre(27, -2));
}

TEST(Mlp, SquaresWithHalfTheSlopeBelowZero) {
  const Guarded m = doubles({2, 1}, {3, -4}), one = doubles({1, 1}, {1}), scale = doubles({1}, {1});
  EXPECT_THAT(call(Mlp{}, {{}, m.tensor(), one.tensor(), one.tensor(), scale.tensor()})[0], ElementsAre(9, 4));
}

TEST(SoftcapCrossEntropy, UniformLogitsCostTheLogOfTheVocabulary) {
  const Guarded x = doubles({2, 1}, {0, 0}), table = doubles({8, 1}, std::vector<double>(8, 1.0)), targets = integers({0, 7});
  const auto out = call(SoftcapCrossEntropy{}, {x.tensor(), table.tensor(), targets.tensor(), {}});
  EXPECT_THAT(out[0], ElementsAre(DoubleNear(std::log(8), 1e-15)));
  EXPECT_THAT(out[1], ElementsAre(DoubleNear(std::log(8), 1e-15), DoubleNear(std::log(8), 1e-15)));
}

TEST(SoftcapCrossEntropy, CapBoundsTheLoss) {
  const Guarded x = doubles({1, 1}, {1}), table = doubles({2, 1}, {1e6, -1e6}), targets = integers({1});
  const auto out = call(SoftcapCrossEntropy{.cap = 30}, {x.tensor(), table.tensor(), targets.tensor(), {}});
  EXPECT_THAT(out[0], ElementsAre(DoubleNear(60, 1e-12)));
}

// Logits 0 and log 3 are shares of 1/4 and 3/4: expecting those costs their entropy, whatever the target.
TEST(SoftcapCrossEntropy, WhatIsExpectedCostsItsEntropy) {
  const Guarded x = doubles({1, 1}, {1}), table = doubles({2, 1}, {0, std::log(3.0)}), targets = integers({0}),
                expected = doubles({1, 2}, {0.25, 0.75});
  const auto out = call(SoftcapCrossEntropy{.cap = 1e9}, {x.tensor(), table.tensor(), targets.tensor(), {}, expected.tensor()});
  EXPECT_THAT(out[0], ElementsAre(DoubleNear(std::log(4) - 0.75 * std::log(3), 1e-6)));
}

TEST(QkNormRope, RotatesByTheSpecsSign) {
  // Position 1, angle θ: (1, 1) → (cosθ + sinθ, cosθ − sinθ); the norm of (1, 1) is already 1 but for eps.
  const double theta = 0.3, c = std::cos(theta), s = std::sin(theta);
  const Guarded q = doubles({2, 2}, {1, 1, 1, 1}), gain = doubles({1}, {2}), rope = doubles({2, 2}, {1, 0, c, s});
  const auto out =
      call(QkNormRope{.row_length = 2, .head_dim = 2, .eps = 0}, {q.tensor(), q.tensor(), gain.tensor(), rope.tensor()});
  EXPECT_THAT(out[0], ElementsAre(2, 2, DoubleNear(2 * (c + s), 1e-15), DoubleNear(2 * (c - s), 1e-15)));
  EXPECT_THAT(out[1], ElementsAre(1, 1, DoubleNear(c + s, 1e-15), DoubleNear(c - s, 1e-15)));
}

TEST(Plans, RefuseWrongShapesWithTheOpsName) {
  const Guarded a = doubles({2, 3}, std::vector<double>(6, 0.0)), b = doubles({3, 2}, std::vector<double>(6, 0.0));
  try {
    Add{}.plan({a.tensor(), b.tensor()});
    FAIL() << "shapes differ";
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[add]"));
  }
}

}  // namespace
}  // namespace fairway::ops_test
