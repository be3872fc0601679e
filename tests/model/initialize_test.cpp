// Initial weights against spec §3.2.
#include "model/initialize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "model/named_bank.h"

namespace fairway {
namespace {

class InitialWeights : public testing::Test {
 protected:
  static ParamStore weights(const Recipe& recipe, uint64_t seed, int threads) {
    ParamStore store(parameter_table(recipe), ParamStore::Gradients::none);
    ThreadPool pool(threads);
    initialize(store, recipe.model, seed, pool);
    return store;
  }
  static bool same_bits(const ParamStore& a, const ParamStore& b) {
    return std::memcmp(a.flat_values().data, b.flat_values().data, a.flat_values().spec.bytes()) == 0;
  }
  const Recipe recipe_ = load_recipe("smoke");
  const ParamStore store_ = weights(recipe_, 1, 1);
};

// Largest distance of the Gram matrix of the short side's vectors from the identity.
double orthogonality_error(const float* m, int64_t rows, int64_t cols) {
  const int64_t count = std::min(rows, cols), length = std::max(rows, cols);
  const auto at = [&](int64_t vector, int64_t i) {
    return static_cast<double>(rows > cols ? m[i * cols + vector] : m[vector * cols + i]);
  };
  double worst = 0;
  for (int64_t a = 0; a < count; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double sum = 0;
      for (int64_t i = 0; i < length; ++i) sum += at(a, i) * at(b, i);
      const double error = std::abs(sum - (a == b ? 1 : 0));
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

TEST_F(InitialWeights, MatricesAreOrthogonalOrZero) {
  const int64_t layers = recipe_.model.layers;
  for (const char* name : {"bank.qo", "bank.kv", "bank.up", "bank.down"}) {
    const Tensor bank = bank_named(store_, name).value;
    for (int64_t i = 0; i < bank.dim(0); ++i) {
      const float* matrix = bank.slice(i).as<float>();
      const bool output = std::string(name) == "bank.down" || (std::string(name) == "bank.qo" && i >= layers);
      if (output) {
        for (int64_t k = 0; k < bank.dim(1) * bank.dim(2); ++k) ASSERT_EQ(matrix[k], 0.0f) << name << " " << i;
      } else {
        EXPECT_LE(orthogonality_error(matrix, bank.dim(1), bank.dim(2)), 1e-2) << name << " " << i;
      }
    }
  }
  for (const char* name : {"bigram.proj", "value_embed.proj"}) {  // spec §16.3: not zero
    const Tensor proj = bank_named(store_, name).value;
    EXPECT_LE(orthogonality_error(proj.as<float>(), proj.dim(0), proj.dim(1)), 1e-2) << name;
  }
}

TEST_F(InitialWeights, NoTwoMatricesAreEqual) {
  std::map<float, std::string> seen;
  for (const char* name : {"bank.qo", "bank.kv", "bank.up"}) {
    const Tensor bank = bank_named(store_, name).value;
    const int64_t drawn = std::string(name) == "bank.qo" ? bank.dim(0) / 2 : bank.dim(0);
    for (int64_t i = 0; i < drawn; ++i) {
      double sum = 0;  // of a few elements with different weights: equal only for equal matrices
      for (int64_t k = 0; k < 16; ++k) sum += static_cast<double>(bank.slice(i).as<float>()[k]) * static_cast<double>(k + 1);
      const std::string here = std::string(name) + std::to_string(i);
      const auto [found, fresh] = seen.emplace(static_cast<float>(sum), here);
      EXPECT_TRUE(fresh) << here << " equals " << found->second;
    }
  }
}

TEST_F(InitialWeights, ConstantsAreTheSpecs) {
  const ModelRecipe& m = recipe_.model;
  const std::vector<std::pair<const char*, double>> constants{
      {"block.attn_scale", 1}, {"block.mlp_scale", 1}, {"block.q_gain", 1.5},      {"block.attn_gate", 0},
      {"skip.weight", 1},      {"skip.gate", 0},       {"smear.weight", 0},        {"smear.lambda", 0},
      {"bigram.table", 0},     {"bigram.scale", 0.05}, {"value_embed.scale", 0.1}, {"value_embed.layer_scale", 1},
      {"lane.resid", 1.1},     {"lane.post", 1}};
  for (const auto& [name, value] : constants) {
    const Tensor tensor = bank_named(store_, name).value;
    for (int64_t i = 0; i < tensor.numel(); ++i) ASSERT_EQ(tensor.as<float>()[i], static_cast<float>(value)) << name;
  }
  const Tensor mix = bank_named(store_, "block.resid_mix").value;
  for (int64_t i = 0; i < mix.numel(); ++i) ASSERT_EQ(mix.as<float>()[i], (i / m.dim) % 2 == 0 ? 1.0f : 0.0f);
}

TEST_F(InitialWeights, TablesAreNormalWithTheirDeviation) {
  const std::vector<std::pair<const char*, double>> tables{{"embed.token", recipe_.model.embed_init_std},
                                                           {"value_embed.table", recipe_.model.value_embed.init_std}};
  for (const auto& [name, deviation] : tables) {
    const Tensor table = bank_named(store_, name).value;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < table.numel(); ++i) {
      const auto value = static_cast<double>(table.as<float>()[i]);
      sum += value, squares += value * value;
    }
    const auto n = static_cast<double>(table.numel());
    EXPECT_NEAR(sum / n, 0, 5 * deviation / std::sqrt(n)) << name;
    EXPECT_NEAR(std::sqrt(squares / n), deviation, 0.03 * deviation) << name;
  }
}

TEST_F(InitialWeights, DrawnValuesAreExactInBf16) {
  for (const char* name : {"embed.token", "value_embed.table", "bank.qo", "bank.kv", "bank.up", "bigram.proj"}) {
    const Tensor tensor = bank_named(store_, name).value;
    for (int64_t i = 0; i < tensor.numel(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(tensor.as<float>()[i]) & 0xFFFFU, 0U) << name;
  }
}

TEST_F(InitialWeights, DependOnTheSeedAlone) {
  EXPECT_TRUE(same_bits(store_, weights(recipe_, 1, 3)));
  const ParamStore other = weights(recipe_, 2, 1);
  for (const char* name : {"embed.token", "value_embed.table", "bank.qo", "bank.kv", "bank.up", "bigram.proj"}) {
    const Tensor a = bank_named(store_, name).value, b = bank_named(other, name).value;
    EXPECT_NE(std::memcmp(a.data, b.data, a.spec.bytes()), 0) << name;
  }
}

TEST_F(InitialWeights, AddingAFeatureMovesNoOtherTensor) {
  Recipe plain = recipe_;
  plain.model.bigram.rows = 0;
  const ParamStore without = weights(plain, 1, 1);
  for (const ParamBank& bank : without.banks())
    EXPECT_EQ(std::memcmp(bank.value.data, bank_named(store_, bank.info.name).value.data, bank.value.spec.bytes()), 0)
        << bank.info.name;
}

}  // namespace
}  // namespace fairway
