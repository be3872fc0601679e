// The optimizer's programs on banks small enough to compute by hand in double (spec §7, §8.1).
#include "optim/optimizer.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "base/bf16.h"
#include "base/error.h"
#include "model/named_bank.h"

namespace fairway {
namespace {

using Values = std::vector<double>;

const std::vector<ParamInfo> kTable{
    {"w", {2, 3, 2}, ParamRole::matrix}, {"t", {3, 2}, ParamRole::token}, {"s", {5}, ParamRole::scalar}};

Recipe recipe_for_tests() {
  Recipe recipe;
  recipe.train.emulated_world = 1;
  recipe.optim.clip = 0.3;
  recipe.optim.matrix = {.lr = 0.02, .wd = 0.1};
  recipe.optim.token = {.lr = 0.03, .wd = 0.2, .beta1 = 0.8, .beta2 = 0.9};
  recipe.optim.scalar = {.lr = 0.05, .wd = 0.3};
  return recipe;
}

// A store, an optimizer and the reference executor.
class Bench {
 public:
  explicit Bench(const Recipe& recipe, const std::vector<ParamInfo>& table = kTable)
      : queue_(1),
        executor_(make_ref_executor(queue_)),
        params_(table, ParamStore::Gradients::kept),
        optimizer_(recipe, params_, *executor_) {
    for (const ParamBank& bank : params_.banks()) fill(bank.value, 0.5, 1);
  }
  static void fill(const Tensor& tensor, double size, int seed) {
    for (int64_t i = 0; i < tensor.numel(); ++i)
      tensor.as<float>()[i] = static_cast<float>(size * std::sin(static_cast<double>(i * 7 + seed * 13 + 1)));
  }
  // One emulated rank with gradients of that size.
  void rank(int64_t index, double size, int seed) {
    optimizer_.begin_rank();
    for (const ParamBank& bank : params_.banks()) {
      for (int64_t i = 0; i < bank.grad.numel(); ++i) EXPECT_EQ(bank.grad.as<float>()[i], 0.0f);
      fill(bank.grad, size, seed);
    }
    optimizer_.end_rank(index);
  }
  void update(const StepNumbers& numbers) { optimizer_.update(numbers); }
  double gradient_norm() { return optimizer_.gradient_norm(); }
  Values values(const char* name) const { return list(bank_named(params_, name).value); }
  Values grads(const char* name) const { return list(bank_named(params_, name).grad); }
  ParamStore& params() { return params_; }
  Optimizer& optimizer() { return optimizer_; }

 private:
  static Values list(const Tensor& tensor) { return {tensor.as<float>(), tensor.as<float>() + tensor.numel()}; }
  Queue queue_;
  std::unique_ptr<Executor> executor_;
  ParamStore params_;
  Optimizer optimizer_;
};

double norm_of(const Bench& bench) {
  double squares = 0;
  for (const char* name : {"w", "t", "s"})
    for (double g : bench.grads(name)) squares += g * g;
  return std::sqrt(squares);
}

void expect_near(const Values& have, const Values& want, double tolerance) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(have[i], want[i], tolerance) << i;
}

struct Adam {
  AdamRecipe rule;
  Values m{}, v{};
  void step(Values& p, const Values& g, double clip, double scale, int t) {
    m.resize(p.size()), v.resize(p.size());
    const double lr = rule.lr * scale;
    for (size_t i = 0; i < p.size(); ++i) {
      const double gradient = clip * g[i];
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * gradient;
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * gradient * gradient;
      const double mean = m[i] / (1 - std::pow(rule.beta1, t)), root = std::sqrt(v[i]) / std::sqrt(1 - std::pow(rule.beta2, t));
      p[i] = p[i] * (1 - lr * rule.wd) - lr * mean / (root + rule.eps);
    }
  }
};

// Orthogonalises a 3×2 matrix (tall: X is its transpose) by NS5.
Values newton_schulz(Values x) {
  double squares = 0;
  for (double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares) + 1e-7;
  for (int k = 0; k < 5; ++k) {
    double a[2][2] = {}, p[2][2] = {};
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j)
        for (size_t r = 0; r < 3; ++r) a[i][j] += x[r * 2 + i] * x[r * 2 + j];
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j)
        p[i][j] = (i == j ? 3.4445 : 0) - 4.7750 * a[i][j] + 2.0315 * (a[i][0] * a[0][j] + a[i][1] * a[1][j]);
    for (size_t r = 0; r < 3; ++r) {
      const double x0 = x[r * 2], x1 = x[r * 2 + 1];
      x[r * 2] = p[0][0] * x0 + p[0][1] * x1, x[r * 2 + 1] = p[1][0] * x0 + p[1][1] * x1;
    }
  }
  return x;
}

TEST(Optimizer, OneRankEqualsHandComputation) {
  const Recipe recipe = recipe_for_tests();
  Bench bench(recipe);
  Values w = bench.values("w"), t = bench.values("t"), s = bench.values("s"), buffer(w.size());
  Adam token{recipe.optim.token}, scalar{recipe.optim.scalar};
  for (int step = 1; step <= 3; ++step) {
    const double size = step == 2 ? 0.01 : 1, scale = 1.0 / step, momentum = 0.9 + 0.01 * step;  // step 2 is not clipped
    bench.rank(0, size, step);
    const double norm = norm_of(bench), clip = std::min(1.0, 0.3 / (norm + 1e-6));
    EXPECT_EQ(clip < 1, step != 2);
    EXPECT_NEAR(bench.gradient_norm(), norm, 1e-6 * norm);
    const Values g = bench.grads("w");
    bench.update({.learning_rate_scale = scale, .momentum = momentum, .step = step});
    token.step(t, bench.grads("t"), clip, scale, step);
    scalar.step(s, bench.grads("s"), clip, scale, step);
    Values u(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      buffer[i] = momentum * buffer[i] + clip * g[i];
      u[i] = clip * g[i] + momentum * buffer[i];
    }
    for (size_t n = 0; n < 2; ++n) {
      const Values o = newton_schulz({u.begin() + static_cast<int64_t>(n) * 6, u.begin() + static_cast<int64_t>(n + 1) * 6});
      const double lr = 0.02 * scale;
      for (size_t i = 0; i < 6; ++i) w[n * 6 + i] = w[n * 6 + i] * (1 - lr * 0.1) - lr * std::sqrt(3.0 / 2) * o[i];
    }
    expect_near(bench.values("t"), t, 1e-6);
    expect_near(bench.values("s"), s, 1e-6);
    expect_near(bench.values("w"), w, 2e-5);  // f32 through five iterations
  }
}

double narrow(double value) { return static_cast<double>(through_bf16(static_cast<float>(value))); }

// Gradients, momentum, tables and their moments pass through bf16 where the published stack stores or sends them so (spec §2);
// arithmetic and scalars are float.
TEST(Optimizer, PublishedPrecisionsEqualHandComputation) {
  Recipe recipe = recipe_for_tests();
  recipe.train.emulated_world = 2;
  recipe.optim.momentum_precision = recipe.optim.token_precision = recipe.optim.exchange_precision = Precision::bf16;
  Bench bench(recipe);
  Values t = bench.values("t"), s = bench.values("s"), buffer(12);
  Adam token{recipe.optim.token}, scalar{recipe.optim.scalar};
  for (int step = 1; step <= 3; ++step) {
    Values w_mean(12), t_mean(6), s_mean(5);
    for (int rank = 0; rank < 2; ++rank) {
      bench.rank(rank, 1 + rank, step + 10 * rank);
      const double factor = std::min(1.0, 0.3 / (bench.gradient_norm() + 1e-6)) / 2;
      const auto add = [&](Values& mean, const char* name, bool rounds) {
        const Values g = bench.grads(name);
        for (size_t i = 0; i < g.size(); ++i)
          mean[i] = rounds ? narrow(mean[i] + narrow(factor * g[i])) : mean[i] + factor * g[i];
      };
      add(w_mean, "w", true);
      add(t_mean, "t", true);
      add(s_mean, "s", false);
    }
    const double momentum = 0.9;
    bench.update({.momentum = momentum, .step = step});
    for (size_t i = 0; i < buffer.size(); ++i) buffer[i] = narrow(momentum * buffer[i] + w_mean[i]);
    const float* kept = bench.optimizer().flat_state().as<float>();  // begins with the momentum of w
    EXPECT_EQ(Values(kept, kept + 12), buffer) << "step " << step;
    token.step(t, t_mean, 1, 1, step);
    scalar.step(s, s_mean, 1, 1, step);
    for (Values* rounded : {&t, &token.m, &token.v})
      for (double& value : *rounded) value = narrow(value);
    expect_near(bench.values("t"), t, 0x1p-9);  // a float just beside a tie may go the other way
    for (double value : bench.values("t")) EXPECT_EQ(value, narrow(value));
    expect_near(bench.values("s"), s, 1e-6);
  }
}

// One process rounds an update as if it had travelled.
TEST(Optimizer, UpdatesOfMatricesAreRoundedLikeTheWire) {
  Recipe recipe = recipe_for_tests();
  recipe.optim.matrix = {.lr = 1, .wd = 0};
  recipe.optim.exchange_precision = Precision::bf16;
  Bench bench(recipe, {{"p", {1, 3, 5}, ParamRole::matrix}});
  Bench::fill(bank_named(bench.params(), "p").value, 0, 0);
  bench.rank(0, 1, 1);
  bench.update({.momentum = 0.9});
  for (double value : bench.values("p")) EXPECT_EQ(value, narrow(value));
}

TEST(Optimizer, RanksAreClippedEachOnItsOwnThenAveraged) {
  Recipe two = recipe_for_tests(), one = recipe_for_tests();
  two.train.emulated_world = 2;
  one.optim.clip = 0;  // takes the mean as it is
  Bench ranks(two), mean(one);
  ranks.rank(0, 1, 1);
  Values expected;
  const double first = std::min(1.0, 0.3 / (norm_of(ranks) + 1e-6));
  for (const char* name : {"w", "t", "s"})
    for (double g : ranks.grads(name)) expected.push_back(first * g / 2);
  ranks.rank(1, 0.01, 2);
  EXPECT_LT(norm_of(ranks), 0.3);  // the second rank is not clipped
  EXPECT_NEAR(ranks.gradient_norm(), norm_of(ranks), 1e-6);
  size_t next = 0;
  for (const char* name : {"w", "t", "s"})
    for (double g : ranks.grads(name)) expected[next++] += g / 2;

  mean.rank(0, 0, 0);
  next = 0;
  for (const ParamBank& bank : mean.params().banks())
    for (int64_t i = 0; i < bank.grad.numel(); ++i) bank.grad.as<float>()[i] = static_cast<float>(expected[next++]);
  ranks.update({.momentum = 0.9});
  mean.update({.momentum = 0.9});
  for (const char* name : {"w", "t", "s"}) expect_near(ranks.values(name), mean.values(name), 3e-6);
}

TEST(Optimizer, ZeroClipNeverClips) {
  Recipe recipe = recipe_for_tests();
  recipe.optim.clip = 0;
  Bench bench(recipe);
  bench.rank(0, 100, 1);
  Values s = bench.values("s");
  bench.update({});
  Adam{recipe.optim.scalar}.step(s, bench.grads("s"), 1, 1, 1);
  expect_near(bench.values("s"), s, 1e-6);
}

TEST(Optimizer, SlicesOfAProjectionAreMatricesOfTheirOwn) {
  Recipe recipe = recipe_for_tests();
  recipe.optim.matrix.projection_slices = 2;
  Bench projection(recipe, {{"p", {4, 3}, ParamRole::matrix}}), bank(recipe, {{"p", {2, 2, 3}, ParamRole::matrix}});
  recipe.optim.matrix.projection_slices = 1;
  Bench whole(recipe, {{"p", {4, 3}, ParamRole::matrix}});
  for (Bench* bench : {&projection, &bank, &whole}) {
    bench->rank(0, 1, 1);
    bench->update({.momentum = 0.9});
  }
  EXPECT_EQ(projection.values("p"), bank.values("p"));
  EXPECT_NE(projection.values("p"), whole.values("p"));
}

TEST(Optimizer, RefusesSlicesThatDoNotDivide) {
  Recipe recipe = recipe_for_tests();
  recipe.optim.matrix.projection_slices = 3;
  const ParamStore store({{"p", {4, 3}, ParamRole::matrix}}, ParamStore::Gradients::kept);
  try {
    Queue queue(1);
    const auto executor = make_ref_executor(queue);
    const Optimizer optimizer(recipe, store, *executor);
    FAIL() << "three slices of four rows were taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("projection_slices = 3"));
  }
}

// The update alone: from zero with lr 1 and no decay the weights are −O.
TEST(Optimizer, EveryKindOfPostNormIsHonoured) {
  const auto update = [](PostNorm kind) {
    Recipe recipe = recipe_for_tests();
    recipe.optim.matrix = {.lr = 1, .wd = 0, .newton_schulz = NewtonSchulzSet::turbo4, .aol = true, .post_norm = kind};
    Bench bench(recipe, {{"p", {1, 3, 5}, ParamRole::matrix}});
    Bench::fill(bank_named(bench.params(), "p").value, 0, 0);
    bench.rank(0, 1, 1);
    bench.update({.momentum = 0.9});
    return bench.values("p");
  };
  const auto norms = [](const Values& m, size_t count, size_t length, size_t step, size_t stride) {
    Values out;
    for (size_t i = 0; i < count; ++i) {
      double squares = 0;
      for (size_t k = 0; k < length; ++k) squares += m[i * step + k * stride] * m[i * step + k * stride];
      out.push_back(std::sqrt(squares));
    }
    return out;
  };
  const Values none = update(PostNorm::none), rows = update(PostNorm::rows), both = update(PostNorm::rows_columns);
  EXPECT_THAT(norms(rows, 3, 5, 5, 1), testing::Each(testing::DoubleNear(1, 1e-4)));
  EXPECT_THAT(norms(both, 5, 3, 1, 5), testing::Each(testing::DoubleNear(1, 1e-4)));
  EXPECT_THAT(norms(rows, 5, 3, 1, 5), testing::Not(testing::Each(testing::DoubleNear(1, 1e-2))));
  EXPECT_THAT(norms(none, 3, 5, 5, 1), testing::Not(testing::Each(testing::DoubleNear(1, 1e-3))));
}

TEST(Optimizer, StateIsWhatACheckpointNeeds) {
  const Recipe recipe = recipe_for_tests();
  Bench a(recipe), b(recipe);
  a.rank(0, 1, 1);
  a.update({.momentum = 0.9, .step = 1});
  const Tensor from = a.optimizer().flat_state(), to = b.optimizer().flat_state();
  ASSERT_EQ(from.spec, to.spec);
  std::memcpy(to.data, from.data, from.spec.bytes());
  std::memcpy(b.params().flat_values().data, a.params().flat_values().data, a.params().flat_values().spec.bytes());
  for (Bench* bench : {&a, &b}) {
    bench->rank(0, 1, 2);
    bench->update({.momentum = 0.9, .step = 2});
  }
  for (const char* name : {"w", "t", "s"}) EXPECT_EQ(a.values(name), b.values(name));
}

}  // namespace
}  // namespace fairway
