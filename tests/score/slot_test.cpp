// The fit of SLOT's offsets (scoring spec §2.4, §11.8) as a program, against the definition in double.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "base/rng.h"

namespace fairway {
namespace {

constexpr int64_t kVocab = 37, kWidth = 12, kRows = 70, kGroups = 3;
constexpr double kCap = 6;

struct Offsets {
  std::vector<float> offset, m, v, shift;
};

class OffsetFitTest : public testing::Test {
 protected:
  OffsetFitTest() : arena_("fit", size_t{1} << 20) {
    Rng rng(3);
    table_ = floats({kVocab, kWidth}, rng);
    hidden_ = floats({kGroups * kRows, kWidth}, rng);
    logits_ = arena_.make("logits", {{kGroups * kRows, kVocab}, DType::f32});
    targets_ = arena_.make("targets", {{kGroups * kRows}, DType::i32});
    for (int64_t j = 0; j < kGroups * kRows; ++j) {
      targets_.as<int32_t>()[j] = static_cast<int32_t>(rng.below(kVocab));
      for (int64_t v = 0; v < kVocab; ++v)
        logits_.as<float>()[j * kVocab + v] = static_cast<float>(logit(j, v, std::vector<float>(kWidth)));
    }
  }

  Tensor floats(Shape shape, Rng& rng) {
    const Tensor out = arena_.make("numbers", {shape, DType::f32});
    for (int64_t i = 0; i < out.numel(); ++i) out.as<float>()[i] = static_cast<float>(rng.normal());
    return out;
  }
  double logit(int64_t row, int64_t v, std::span<const float> delta) const {
    double sum = 0;
    for (int64_t d = 0; d < kWidth; ++d)
      sum += static_cast<double>(table_.as<float>()[v * kWidth + d]) *
             (static_cast<double>(hidden_.as<float>()[row * kWidth + d]) + static_cast<double>(delta[static_cast<size_t>(d)]));
    return sum;
  }
  // Mean cross-entropy of a group's rows that have a target.
  double truth(int64_t group, std::span<const float> delta) const {
    double total = 0, count = 0;
    for (int64_t j = group * kRows; j < (group + 1) * kRows; ++j) {
      if (targets_.as<int32_t>()[j] < 0) continue;
      double sum = 0;
      const auto z = [&](int64_t v) { return kCap * std::tanh(logit(j, v, delta) / kCap); };
      for (int64_t v = 0; v < kVocab; ++v) sum += std::exp(z(v));
      total += std::log(sum) - z(targets_.as<int32_t>()[j]);
      count += 1;
    }
    return total / count;
  }

  // Fits the first groups, from moments of zero.
  Offsets fit(int64_t groups, int64_t steps, float begin = 0, int threads = 1, int32_t taken = 0) {
    Arena state("state", size_t{1} << 16);
    const Spec spec{{groups, kWidth}, DType::f32};
    const Tensor offset = state.make("offset", spec), m = state.make("m", spec), v = state.make("v", spec);
    const Tensor before = state.make("taken", {{1}, DType::i32});
    for (int64_t i = 0; i < offset.numel(); ++i) offset.as<float>()[i] = begin * static_cast<float>(1 + i % 5);
    *before.as<int32_t>() = taken;
    Tape tape;
    const Var shift = tape.one(OffsetFit{.cap = kCap, .learning_rate = 0.01, .steps = steps},
                               {tape.input("table", table_), tape.input("offset", offset), tape.input("m", m),
                                tape.input("v", v), tape.input("logits", logits_.part(0, {groups * kRows, kVocab})),
                                tape.input("targets", targets_.part(0, {groups * kRows})), tape.input("taken", before)});
    tape.keep(shift);
    Queue queue(threads);
    const auto executor = make_cpu_executor(queue);
    const auto session = executor->open(std::move(tape).finish());
    session->run();
    const auto numbers = [](const Tensor& t) { return std::vector<float>(t.as<float>(), t.as<float>() + t.numel()); };
    return {numbers(offset), numbers(m), numbers(v), numbers(session->fetch(shift.id))};
  }
  static std::span<const float> group_of(const std::vector<float>& all, int64_t group) {
    return std::span(all).subspan(static_cast<size_t>(group * kWidth), kWidth);
  }

  Arena arena_;
  Tensor table_, hidden_, logits_, targets_;
};

TEST_F(OffsetFitTest, GradientEqualsCentralDifferences) {
  for (int64_t j = 5; j < 20; ++j) targets_.as<int32_t>()[kRows + j] = -1;
  const Offsets fitted = fit(kGroups, 1, 0.05f);
  const std::vector<float> start = fit(kGroups, 0, 0.05f).offset;
  for (int64_t group = 0; group < kGroups; ++group)
    for (size_t d = 0; d < 5; ++d) {
      const auto from = group_of(start, group);
      std::vector<float> up(from.begin(), from.end()), down = up;
      up[d] += 1e-3f, down[d] -= 1e-3f;
      const double expected =
          (truth(group, up) - truth(group, down)) / (static_cast<double>(up[d]) - static_cast<double>(down[d]));
      const double gradient = static_cast<double>(group_of(fitted.m, group)[d]) / 0.1;
      EXPECT_TRUE(std::abs(gradient - expected) <= 1e-3 * std::abs(expected) + 1e-6)
          << group << " " << d << ": " << gradient << " against " << expected;
    }
}

TEST_F(OffsetFitTest, TheFirstStepIsOneLearningRateAndStepsLowerTheLoss) {
  for (const float value : fit(kGroups, 1).offset) EXPECT_NEAR(std::abs(static_cast<double>(value)), 0.01, 1e-3);
  const std::vector<float> start(kWidth), five = fit(kGroups, 5).offset;
  for (int64_t group = 0; group < kGroups; ++group) EXPECT_LT(truth(group, group_of(five, group)), truth(group, start));
}

TEST_F(OffsetFitTest, TheShiftIsThatOfTheLastOffset) {
  const Offsets fitted = fit(kGroups, 3);
  for (int64_t group = 0; group < kGroups; ++group)
    for (int64_t v = 0; v < kVocab; ++v) {
      const double expected = logit(0, v, group_of(fitted.offset, group)) - logit(0, v, std::vector<float>(kWidth));
      EXPECT_NEAR(static_cast<double>(fitted.shift[static_cast<size_t>(group * kVocab + v)]), expected, 1e-5);
    }
}

TEST_F(OffsetFitTest, NeitherThreadsNorOtherGroupsChangeABit) {
  const Offsets alone = fit(1, 4), together = fit(kGroups, 4), threads = fit(kGroups, 4, 0, 3);
  EXPECT_EQ(together.offset, threads.offset);
  EXPECT_TRUE(std::equal(alone.offset.begin(), alone.offset.end(), together.offset.begin()));
  EXPECT_TRUE(std::equal(alone.shift.begin(), alone.shift.end(), together.shift.begin()));
}

TEST_F(OffsetFitTest, AGroupWithoutTargetsStaysAsItIs) {
  for (int64_t j = 0; j < kRows; ++j) targets_.as<int32_t>()[kRows + j] = -1;
  const Offsets start = fit(kGroups, 0, 0.05f), fitted = fit(kGroups, 4, 0.05f);
  for (size_t d = 0; d < kWidth; ++d) {
    EXPECT_EQ(group_of(fitted.offset, 1)[d], group_of(start.offset, 1)[d]);
    EXPECT_NE(group_of(fitted.offset, 0)[d], group_of(start.offset, 0)[d]);
  }
}

TEST_F(OffsetFitTest, CountsTheStepsTakenBefore) {
  // Moments of zero at a later step: the bias is corrected less, so that the step is smaller than a learning rate.
  const Offsets first = fit(1, 1), later = fit(1, 1, 0, 1, 9);
  const double scale = 0.1 / (1 - std::pow(0.9, 10)) / std::sqrt(0.001 / (1 - std::pow(0.999, 10)));
  for (size_t d = 0; d < kWidth; ++d)
    EXPECT_NEAR(static_cast<double>(later.offset[d]), scale * static_cast<double>(first.offset[d]), 2e-4);
}

}  // namespace
}  // namespace fairway
