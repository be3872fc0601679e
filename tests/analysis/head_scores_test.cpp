// Heads of the hand-made model score and are classed as what they are made to do; both definitions of induction tell apart a
// head that follows the repeated token from one that finds its earlier occurrence.
#include "analysis/head_scores.h"

#include <gtest/gtest.h>

#include <cstring>

#include "analysis/hand_made.h"
#include "base/rng.h"

namespace fairway::analysis_test {
namespace {

double harmonic(int64_t n) {
  double sum = 0;
  for (int64_t k = 1; k <= n; ++k) sum += 1 / static_cast<double>(k);
  return sum;
}

TEST(Heads, AreFoundByWhatTheyLookAt) {
  HandMade made;
  const std::vector<HeadScore> heads = measure_heads(made.input());
  ASSERT_EQ(heads.size(), 4U);
  const HeadScore &previous = heads[0], &uniform = heads[1], &induction = heads[2], &same = heads[3];
  constexpr double kLength = 2 * kNames, kTokens = kNames;

  EXPECT_GT(previous.previous, 0.98);
  EXPECT_EQ(previous.previous, previous.offsets[0]);
  EXPECT_EQ(previous.published(), HeadClass::previous);
  EXPECT_EQ(previous.classical(), HeadClass::previous);
  EXPECT_NEAR(previous.self, 1 / kLength, 1e-3);  // the first token has nothing else
  EXPECT_LT(previous.induction, 1e-3);

  EXPECT_NEAR(uniform.previous, (harmonic(2 * kNames) - 1) / (kLength - 1), 1e-6);
  EXPECT_NEAR(uniform.first, harmonic(2 * kNames) / kLength, 1e-6);
  EXPECT_NEAR(uniform.self, uniform.first, 1e-6);
  double entropy = 0;
  for (int64_t t = 1; t <= 2 * kNames; ++t) entropy += std::log(static_cast<double>(t)) / kLength;
  EXPECT_NEAR(uniform.entropy, entropy, 1e-5);
  EXPECT_NEAR(uniform.induction_classical, (harmonic(2 * kNames) - harmonic(kNames)) / kTokens, 1e-6);
  EXPECT_EQ(uniform.published(), HeadClass::other);

  // One of the names opened the row: there its successor shares the look with the row's first token.
  EXPECT_NEAR(induction.induction_classical, (kTokens - 0.5) / kTokens, 2e-3);
  EXPECT_LT(induction.induction, 1e-3);
  EXPECT_EQ(induction.classical(), HeadClass::induction);
  EXPECT_NE(induction.published(), HeadClass::induction);

  EXPECT_NEAR(same.induction, 0.5, 2e-3);  // the other half is on itself
  EXPECT_NEAR(same.self, 0.75, 2e-3);
  EXPECT_LT(same.induction_classical, 1e-3);
  EXPECT_EQ(same.published(), HeadClass::induction);
  EXPECT_NE(same.classical(), HeadClass::induction);
}

TEST(Heads, AreClassedByPriorityAndBeyondTheirBounds) {
  EXPECT_EQ((HeadScore{.previous = 0.9, .first = 0.9}.by(0.021)), HeadClass::induction);
  EXPECT_EQ((HeadScore{.previous = 0.11, .first = 0.9}.by(0.02)), HeadClass::previous);
  EXPECT_EQ((HeadScore{.previous = 0.1, .first = 0.11}.by(0)), HeadClass::positional);
  EXPECT_EQ((HeadScore{.previous = 0.1, .first = 0.1}.by(0)), HeadClass::other);
}

// Attention written out once more, from the observed queries and keys and in double, on random tokens and weights.
TEST(Heads, EqualAttentionWrittenOut) {
  HandMade made;
  Rng rng(8);
  made.recipe.model.kv_heads = 1;
  made.weights = std::make_shared<ParamStore>(parameter_table(made.recipe), ParamStore::Gradients::none);
  for (const ParamBank& bank : made.weights->banks())
    for (int64_t i = 0; i < bank.value.numel(); ++i) bank.value.as<float>()[i] = static_cast<float>(rng.normal());
  for (uint16_t& token : made.stream) token = static_cast<uint16_t>(rng.below(20));
  const int64_t length = 2 * kNames;
  std::vector<std::vector<float>> queries, keys;
  const AnalysisInput input = made.input();
  TokenRows(input).each([](int64_t, int64_t) {},
                        [&](std::string_view point, const Tensor& value) {
                          const std::vector<float> copy(value.as<float>(), value.as<float>() + value.numel());
                          if (layer_of_point(point, ".q") >= 0) queries.push_back(copy);
                          if (layer_of_point(point, ".k") >= 0) keys.push_back(copy);
                        });
  const std::vector<HeadScore> heads = measure_heads(input);
  ASSERT_EQ(queries.size(), 2U);  // the rows fit in one batch
  for (size_t at = 0; at < heads.size(); ++at) {
    const size_t layer = at / 2, head = at % 2;
    double previous = 0, published = 0, classical = 0, published_pairs = 0, classical_pairs = 0, entropy = 0;
    for (int64_t row = 0; row < 3; ++row) {
      const uint16_t* tokens = made.stream.data() + row * length;
      for (int64_t t = 0; t < length; ++t) {
        std::vector<double> a(static_cast<size_t>(t + 1));
        double sum = 0;
        for (int64_t s = 0; s <= t; ++s) {
          double score = 0;
          for (int64_t e = 0; e < kHead; ++e)
            score +=
                static_cast<double>(
                    queries[layer][static_cast<size_t>((row * length + t) * kWidth + static_cast<int64_t>(head) * kHead + e)]) *
                static_cast<double>(keys[layer][static_cast<size_t>((row * length + s) * kHead + e)]);
          sum += a[static_cast<size_t>(s)] = std::exp(score / 8);
        }
        for (double& p : a) entropy -= (p /= sum) > 0 ? p * std::log(p) : 0;
        if (t > 0) previous += a[static_cast<size_t>(t - 1)];
        for (int64_t j = 0; j < t; ++j) {
          if (tokens[j] == tokens[t]) classical += a[static_cast<size_t>(j + 1)], ++classical_pairs;
          if (t > 0 && j < t - 1 && tokens[j] == tokens[t - 1]) published += a[static_cast<size_t>(j + 1)], ++published_pairs;
        }
      }
    }
    EXPECT_NEAR(heads[at].previous, previous / static_cast<double>(3 * (length - 1)), 1e-5) << at;
    EXPECT_NEAR(heads[at].entropy, entropy / static_cast<double>(3 * length), 1e-4) << at;
    EXPECT_NEAR(heads[at].induction, published / published_pairs, 1e-5) << at;
    EXPECT_NEAR(heads[at].induction_classical, classical / classical_pairs, 1e-5) << at;
  }
}

TEST(Heads, AreTheSameBitsForAnyNumberOfThreads) {
  HandMade one(1), three(3);
  const std::vector<HeadScore> a = measure_heads(one.input()), b = measure_heads(three.input());
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(HeadScore)), 0);
}

TEST(Points, AreKnownByLayerAndSuffix) {
  EXPECT_EQ(layer_of_point("layer12.q", ".q"), 12);
  EXPECT_EQ(layer_of_point("layer1.mlp_out", ".out"), -1);
  EXPECT_EQ(layer_of_point("final", ".q"), -1);
  EXPECT_EQ(layer_of_point("layer.q", ".q"), -1);
}

}  // namespace
}  // namespace fairway::analysis_test
