// The offset's gradient in closed form (scoring spec §11.8) and its update.
#include "score/slot_offset.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace fairway {
namespace {

class SlotOffsetTest : public testing::Test {
 protected:
  static constexpr int64_t kVocab = 37, kWidth = 12, kRows = 70;
  SlotOffsetTest() : embedding_(kVocab * kWidth), hidden_(kRows * kWidth), logits_(kRows * kVocab) {
    Rng rng(3);
    for (float& value : embedding_) value = static_cast<float>(rng.normal());
    for (float& value : hidden_) value = static_cast<float>(rng.normal());
    for (int64_t j = 0; j < kRows; ++j) {
      for (int64_t v = 0; v < kVocab; ++v) logits_[at(j, v)] = static_cast<float>(logit(j, v, std::vector<float>(kWidth)));
      rows_.push_back({logits_.data() + j * kVocab, static_cast<int32_t>(rng.below(kVocab))});
    }
  }
  static size_t at(int64_t j, int64_t v) { return static_cast<size_t>(j * kVocab + v); }
  double logit(int64_t j, int64_t v, std::span<const float> delta) const {
    double sum = 0;
    for (int64_t d = 0; d < kWidth; ++d) {
      const double h = static_cast<double>(hidden_[static_cast<size_t>(j * kWidth + d)]) +
                       static_cast<double>(delta[static_cast<size_t>(d)]);
      sum += static_cast<double>(embedding_[static_cast<size_t>(v * kWidth + d)]) * h;
    }
    return sum;
  }
  // Mean cross-entropy from the definition, in double.
  double truth(std::span<const float> delta) const {
    double total = 0;
    for (int64_t j = 0; j < kRows; ++j) {
      double sum = 0, target = 0;
      for (int64_t v = 0; v < kVocab; ++v) {
        const double z = kCap * std::tanh(logit(j, v, delta) / kCap);
        sum += std::exp(z);
        if (v == rows_[static_cast<size_t>(j)].target) target = z;
      }
      total += std::log(sum) - target;
    }
    return total / static_cast<double>(kRows);
  }
  SlotOffset offset(ThreadPool& pool) {
    return {make_view(embedding_.data(), {{kVocab, kWidth}, DType::f32}), kCap, 0.01, pool};
  }

  static constexpr double kCap = 6;
  std::vector<float> embedding_, hidden_, logits_;
  std::vector<SlotRow> rows_;
};

TEST_F(SlotOffsetTest, GradientEqualsCentralDifferences) {
  ThreadPool pool(2);
  SlotOffset slot = offset(pool);
  Rng rng(9);
  for (float& value : slot.delta()) value = static_cast<float>(0.3 * rng.normal());
  slot.refresh();
  const std::vector<float> gradient(slot.gradient(rows_).begin(), slot.gradient(rows_).end());
  EXPECT_NEAR(slot.loss(rows_), truth(slot.delta()), 1e-5);
  for (size_t d = 0; d < 5; ++d) {
    std::vector<float> up(slot.delta().begin(), slot.delta().end()), down = up;
    up[d] += 1e-3f, down[d] -= 1e-3f;
    const double expected = (truth(up) - truth(down)) / (static_cast<double>(up[d]) - static_cast<double>(down[d]));
    EXPECT_TRUE(std::abs(static_cast<double>(gradient[d]) - expected) <= 1e-3 * std::abs(expected) + 1e-6)
        << d << ": " << gradient[d] << " against " << expected;
  }
}

TEST_F(SlotOffsetTest, TheFirstStepIsOneLearningRateAndStepsLowerTheLoss) {
  ThreadPool pool(1);
  SlotOffset slot = offset(pool);
  const double before = slot.loss(rows_);
  slot.step(rows_);
  for (const float value : slot.delta()) EXPECT_NEAR(std::abs(static_cast<double>(value)), 0.01, 1e-3);
  for (int i = 0; i < 4; ++i) slot.step(rows_);
  EXPECT_LT(slot.loss(rows_), before);
  slot.reset();
  EXPECT_EQ(slot.loss(rows_), before);
}

TEST_F(SlotOffsetTest, ThreadsChangeNoBit) {
  ThreadPool one(1), three(3);
  SlotOffset a = offset(one), b = offset(three);
  for (int i = 0; i < 3; ++i) a.step(rows_), b.step(rows_);
  EXPECT_TRUE(std::equal(a.delta().begin(), a.delta().end(), b.delta().begin()));
  EXPECT_EQ(a.score(rows_[5], {}, nullptr).digest, b.score(rows_[5], {}, nullptr).digest);
}

TEST_F(SlotOffsetTest, ScoresAreThoseOfTheDefinition) {
  ThreadPool pool(1);
  SlotOffset slot = offset(pool);
  for (int i = 0; i < 3; ++i) slot.step(rows_);
  double total = 0;
  for (const SlotRow& row : rows_) total += static_cast<double>(slot.score(row, {}, nullptr).nll);
  EXPECT_NEAR(total / static_cast<double>(kRows), truth(slot.delta()), 1e-5);
}

}  // namespace
}  // namespace fairway
