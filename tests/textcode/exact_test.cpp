// The predictor of compressed texts: near the scorer's logits for every recipe and stage, and the same bits on any number of
// threads, with any instruction set and whatever rows stand beside.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "generate/scored_logits.h"
#include "ops/cpu/isa/kernels.h"
#include "textcode/exact_kernels.h"
#include "textcode/exact_predictor.h"
#include "textcode/head_caches.h"

namespace fairway::textcode {
namespace {

using namespace generate_test;

constexpr int64_t kWindow = 37;
constexpr double kNear = 0.0025;  // of the largest logit: keys, values, queries and weights have 13 bits

Recipe windowed(std::string_view name) {
  Recipe recipe = shrunk(name);
  recipe.data.seq_len = kWindow;
  return recipe;
}

using Rows = LogitRows;

// Logits of one lane of several; the other lanes see the same tokens later on in the row.
Rows predicted(const QuantizedModel& model, const Recipe& recipe, ModelStage stage, const std::vector<int32_t>& tokens,
               int threads, int64_t lanes = 3, int64_t lane = 1) {
  Queue queue(threads);
  const PackedWeights weights(model, queue.pool());
  ExactPredictor predictor(recipe, weights, stage, lanes * kWindow, queue);
  EXPECT_EQ(predictor.lanes(), lanes);
  Rows out;
  for (size_t t = 0; t < tokens.size(); ++t) {
    std::vector<int32_t> step;
    for (int64_t i = 0; i < lanes; ++i) step.push_back(tokens[(t + static_cast<size_t>(i - lane + lanes)) % tokens.size()]);
    step[static_cast<size_t>(lane)] = tokens[t];
    predictor.step(step);
    out.emplace_back(predictor.logits(lane).begin(), predictor.logits(lane).end());
  }
  return out;
}

TEST(ExactPredictor, IsNearTheScorersLogits) {
  for (const StageCase& stage : every_stage()) {
    SCOPED_TRACE(stage.name + (stage.looped ? " looped" : ""));
    const Recipe recipe = windowed(stage.name);
    const QuantizedModel model = quantized(recipe);
    const std::vector<int32_t> tokens = tokens_of(recipe, kWindow, 3);
    const Rows want = scored(model, recipe, {.looped = stage.looped}, tokens);
    const Rows have = predicted(model, recipe, {.looped = stage.looped}, tokens, 2);
    for (size_t t = 0; t < tokens.size(); ++t) ASSERT_LE(distance(have[t], want[t]), kNear) << "token " << t;
  }
}

TEST(ExactPredictor, HasTheSameBitsOnAnyThreadsRowsAndInstructions) {
  Recipe recipe = windowed("record");
  recipe.quant.lqer.tensors = 3;
  recipe.quant.lqer.rank = 4;
  const QuantizedModel model = quantized(recipe);
  const std::vector<int32_t> tokens = tokens_of(recipe, kWindow, 4);
  const cpu::KernelTable& chosen = cpu::kernels();
  cpu::use_kernels(*cpu::find_kernels("generic"));
  const Rows want = predicted(model, recipe, {}, tokens, 1);
  for (const cpu::KernelTable* table : cpu::available_kernels()) {
    cpu::use_kernels(*table);
    EXPECT_EQ(want, predicted(model, recipe, {}, tokens, 3)) << table->name;
    EXPECT_EQ(want, predicted(model, recipe, {}, tokens, 2, 5, 4)) << table->name;
    EXPECT_EQ(want, predicted(model, recipe, {}, tokens, 1, 1, 0)) << table->name;
  }
  cpu::use_kernels(chosen);
}

std::vector<const ExactKernels*> kernels_here() {
  std::vector<const ExactKernels*> out{&exact_generic};
#if defined(__x86_64__)
  if (cpu::find_kernels("avx2") != nullptr) out.push_back(&exact_avx2);
  if (cpu::find_kernels("avx512") != nullptr) out.push_back(&exact_avx512);
  if (cpu::find_kernels("avx512") != nullptr && __builtin_cpu_supports("avx512vnni")) out.push_back(&exact_vnni);
#endif
  return out;
}

// One kv head over many positions, of which some take nearly all of the attention.
struct HeadCase {
  int64_t size, group, length;
  std::vector<float> q, k, v;  // (length, group, size), (length, size), (length, size)

  HeadCase(int64_t channels, int64_t heads, int64_t positions) : size(channels), group(heads), length(positions) {
    Rng rng(static_cast<uint64_t>(size * group));
    const auto fill = [&](std::vector<float>& x, int64_t count, double scale) {
      for (int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(scale * rng.normal()));
    };
    fill(q, length * group * size, 2), fill(k, length * size, 1), fill(v, length * size, 1);
    for (int64_t e = 0; e < size; ++e) k[static_cast<size_t>(e)] *= 3;
  }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(size)); }

  std::vector<float> attend(const ExactKernels& kernels) const {
    const HeadCaches caches({.heads = 1, .size = size, .length = length});
    HeadScratch scratch;
    scratch.fit(1, group, caches.shape());
    std::vector<float> y(q.size());
    for (int64_t t = 0; t < length; ++t) {
      AttendArgs a{.q = q.data() + t * group * size,
                   .k = k.data() + t * size,
                   .v = v.data() + t * size,
                   .y = y.data() + t * group * size,
                   .group = group,
                   .position = t,
                   .scale = scale()};
      caches.place(0, a);
      scratch.place(0, a);
      kernels.attend(a);
    }
    return y;
  }

  // In double, of one position and query head.
  std::vector<double> attended(int64_t t, int64_t g) const {
    std::vector<double> y(static_cast<size_t>(size));
    double sum = 0;
    for (int64_t s = 0; s <= t; ++s) {
      double dot = 0;
      for (int64_t e = 0; e < size; ++e) dot += at(q, (t * group + g) * size + e) * at(k, s * size + e);
      const double weight = std::exp(dot * static_cast<double>(scale()));
      sum += weight;
      for (int64_t e = 0; e < size; ++e) y[static_cast<size_t>(e)] += weight * at(v, s * size + e);
    }
    for (double& x : y) x /= sum;
    return y;
  }
  static double at(const std::vector<float>& x, int64_t i) { return static_cast<double>(x[static_cast<size_t>(i)]); }
};

TEST(ExactKernels, AttendNearlyAndAgreeToTheLastBit) {
  for (const auto& [size, group] : {std::pair<int64_t, int64_t>{16, 1}, {24, 3}, {64, 2}, {128, 1}, {250, 2}}) {
    SCOPED_TRACE(size);
    const HeadCase one(size, group, 3 * kTilePositions + 5);
    const std::vector<float> have = one.attend(exact_generic);
    for (int64_t t = 0; t < one.length; ++t)
      for (int64_t g = 0; g < group; ++g) {
        const std::vector<double> want = one.attended(t, g);
        for (int64_t e = 0; e < size; ++e)
          ASSERT_NEAR(HeadCase::at(have, (t * group + g) * size + e), want[static_cast<size_t>(e)], 4e-3) << t;
      }
    for (const ExactKernels* kernels : kernels_here()) EXPECT_EQ(have, one.attend(*kernels));
  }
}

TEST(ExactKernels, FactorsAreAsLargeAsTheirSumsAllow) {
  for (const int64_t terms : {16, 64, 128, 256}) {
    const int64_t most = most_factor(terms);
    EXPECT_LT(most * most * terms, int64_t{1} << 31);
    EXPECT_GE((most + 1) * (most + 1) * terms, int64_t{1} << 31);
  }
}

TEST(ExactKernels, AgreeToTheLastBit) {
  Rng rng(9);
  std::vector<float> a(173), b(173);
  for (float& x : a) x = static_cast<float>(8 * rng.normal());
  for (float& x : b) x = static_cast<float>(rng.normal());
  a[5] = NAN, a[6] = INFINITY, a[7] = -INFINITY;
  const auto results = [&](const ExactKernels& k) {
    std::vector<uint32_t> out(a.size());
    const uint64_t total = k.weigh(a.data(), static_cast<int64_t>(a.size()), out.data());
    std::vector<float> capped = b;
    k.softcap(capped.data(), static_cast<int64_t>(capped.size()), 15.0F);
    for (const float x : capped) out.push_back(std::bit_cast<uint32_t>(x));
    out.push_back(std::bit_cast<uint32_t>(k.dot(b.data(), b.data() + 1, 170)));
    out.push_back(static_cast<uint32_t>(total));
    return out;
  };
  const auto want = results(exact_generic);
  EXPECT_EQ(want[5], 1U);  // NaN
  for (const ExactKernels* kernels : kernels_here()) EXPECT_EQ(want, results(*kernels));
}

TEST(ExactKernels, WeighAsSoftmaxDoes) {
  Rng rng(2);
  std::vector<float> z(64);
  for (float& x : z) x = static_cast<float>(4 * rng.normal());
  std::vector<uint32_t> weights(z.size());
  const auto total = static_cast<double>(exact_kernels().weigh(z.data(), 64, weights.data()));
  double sum = 0;
  for (const float x : z) sum += std::exp(static_cast<double>(x));
  for (size_t i = 0; i < z.size(); ++i) EXPECT_NEAR(weights[i] / total, std::exp(static_cast<double>(z[i])) / sum, 2e-6) << i;
}

}  // namespace
}  // namespace fairway::textcode
