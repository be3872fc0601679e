// Moments are the variance of sequences' gradients, however many threads and whichever backend makes them.
#include "pack/gradient_moments.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/executor.h"
#include "backends/backends.h"
#include "generate/tiny_recipes.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;
using generate_test::tokens_of;

constexpr int64_t kLength = 12;

class Moments : public testing::Test {
 protected:
  TensorMoments of(std::span<const int32_t> text, Backend backend = Backend::cpu, int threads = 2) {
    Queue queue(threads);
    const auto executor = make_executor(backend, queue);
    return gradient_moments({recipe_, params_, {}, *executor, queue}, text, kLength);
  }
  std::vector<int32_t> repeated(std::initializer_list<int> sequences) const {
    std::vector<int32_t> text;
    for (const int which : sequences) {
      const auto own = tokens_of(recipe_, kLength + 1, static_cast<uint64_t>(which));
      text.insert(text.end(), own.begin(), own.end());
    }
    return text;
  }
  void SetUp() override { randomize(params_); }

  Recipe recipe_ = shrunk("pr1105");
  ParamStore params_{parameter_table(recipe_), ParamStore::Gradients::none};
};

TEST_F(Moments, AreAVariance) {
  const TensorMoments once = of(repeated({1, 2})), twice = of(repeated({1, 2, 1, 2})), same = of(repeated({1, 1}));
  ASSERT_GT(once.size(), 6U);
  for (const auto& [name, moment] : once) {
    ASSERT_TRUE(std::isfinite(moment.all)) << name;
    EXPECT_NEAR(twice.at(name).all, moment.all * 2 / 3, 1e-4 * moment.all) << name;  // n·σ²/(n − 1)
    EXPECT_LE(same.at(name).all, 1e-6 * moment.all) << name;
    double rows = 0;
    for (const float row : moment.rows) rows += static_cast<double>(row);
    EXPECT_NEAR(rows, static_cast<double>(moment.rows.size()), 1e-3 * rows) << name;
  }
  const std::vector<float>& tokens = once.at("embed.token").rows;
  ASSERT_EQ(static_cast<int64_t>(tokens.size()), recipe_.model.vocab);
  const std::vector<int32_t> seen = repeated({1, 2});
  float most = 0;
  for (const int32_t token : seen) most = std::max(most, tokens[static_cast<size_t>(token)]);
  EXPECT_EQ(most, *std::max_element(tokens.begin(), tokens.end())) << "the loss depends most on a token that occurs";

  const Hessian& columns = once.at("bigram.table").columns;
  ASSERT_GT(columns.side, 0) << "a table has no inputs";
  EXPECT_GT(columns.trace(), 0);
  EXPECT_EQ(columns.at(0, 1), columns.at(1, 0));
  EXPECT_LE(same.at("bigram.table").columns.side == 0 ? 0 : same.at("bigram.table").columns.trace(), 1e-5 * columns.trace());
  EXPECT_EQ(once.at("bank.up[0]").columns.side, 0) << "a matrix with inputs";

  for (const char* name : {"bank.up[0]", "bank.down[1]", "bank.qo[0]", "embed.token"}) EXPECT_GT(once.at(name).all, 0) << name;
}

TEST_F(Moments, DoNotDependOnThreadsOrBackend) {
  const std::vector<int32_t> text = repeated({1, 2, 3});
  const TensorMoments two = of(text), one = of(text, Backend::cpu, 1), reference = of(text, Backend::ref);
  EXPECT_EQ(one, two);
  for (const auto& [name, moment] : reference) EXPECT_NEAR(two.at(name).all, moment.all, 1e-3 * moment.all) << name;
}

}  // namespace
}  // namespace fairway::calibrate_test
