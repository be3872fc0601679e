// Drawing tokens, and text that goes on when the window is full.
#include "generate/sample.h"

#include <gmock/gmock.h>

#include "backends/backends.h"
#include "generate/tiny_recipes.h"
#include "score/eval_model.h"

namespace fairway::generate_test {
namespace {

using testing::ElementsAre;

TEST(Draw, FollowsTheDistributionAndItsLimits) {
  const std::vector<float> logits{0.0f, 2.0f, -1.0f, 1.0f};
  Rng rng(1);
  EXPECT_EQ(draw(logits, {.temperature = 0}, rng), 1);
  std::vector<double> seen(4);
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) seen[static_cast<size_t>(draw(logits, {.temperature = 0.8}, rng))] += 1.0 / kDraws;
  double total = 0;
  for (float logit : logits) total += std::exp(static_cast<double>(logit) / 0.8);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(seen[i], std::exp(static_cast<double>(logits[i]) / 0.8) / total, 0.01) << i;
  for (int i = 0; i < 200; ++i) {
    const int32_t token = draw(logits, {.temperature = 5, .top_k = 2}, rng);
    EXPECT_TRUE(token == 1 || token == 3) << token;
  }
}

TEST(Draw, KeepsToTheLikeliestShareAndToTheVocabulary) {
  const std::vector<float> logits{0.0f, 2.0f, -1.0f, 1.9f};  // shares 0.06, 0.47, 0.02, 0.43 at temperature 1
  Rng rng(2);
  const auto drawn = [&](const SampleOptions& options) {
    std::vector<int> seen(4);
    for (int i = 0; i < 400; ++i) ++seen[static_cast<size_t>(draw(logits, options, rng))];
    return seen;
  };
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.3}), ElementsAre(0, 400, 0, 0));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0}), ElementsAre(0, 400, 0, 0));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.8}), ElementsAre(0, testing::Gt(100), 0, testing::Gt(100)));
  EXPECT_THAT(drawn({.temperature = 1, .top_p = 0.95}), ElementsAre(testing::Gt(0), testing::Gt(100), 0, testing::Gt(100)));
  EXPECT_THAT(drawn({.temperature = 1, .top_k = 1, .top_p = 0.95}), ElementsAre(0, 400, 0, 0));
  EXPECT_THAT(drawn({.temperature = 9, .vocab = 2}), ElementsAre(testing::Gt(0), testing::Gt(0), 0, 0));
  EXPECT_THAT(drawn({.temperature = 0, .vocab = 1}), ElementsAre(400, 0, 0, 0));
}

class Sampling : public testing::Test {
 protected:
  Sampling() : params_(parameter_table(recipe_), ParamStore::Gradients::none) { randomize(params_); }

  std::vector<int32_t> sampled(std::vector<int32_t> prompt, int64_t window, const SampleOptions& options) {
    Decoder decoder(recipe_, params_, 1, window, {}, *executor_);
    return sample(decoder, std::move(prompt), options);
  }
  // The likeliest token after `context`, by a whole forward pass.
  int32_t likeliest(const std::vector<int32_t>& context) {
    EvalModel model(recipe_, 1, static_cast<int64_t>(context.size()), {}, *executor_);
    std::copy_n(params_.flat_values().as<float>(), params_.flat_values().numel(), model.params().flat_values().as<float>());
    std::copy(context.begin(), context.end(), model.tokens().begin());
    std::fill(model.targets().begin(), model.targets().end(), 0);
    model.run();
    const auto logits = model.logits(static_cast<int64_t>(context.size()) - 1);
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  Recipe recipe_ = shrunk("pr726");
  ParamStore params_;
  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_executor(Backend::cpu, queue_);
};

TEST_F(Sampling, SlidesToTheLastHalfOfAFullWindow) {
  const std::vector<int32_t> prompt{1, 20, 5};
  constexpr int64_t kWindow = 8;
  const std::vector<int32_t> made = sampled(prompt, kWindow, {.tokens = 20, .temperature = 0});
  std::vector<int32_t> text = prompt, context = prompt;
  for (int i = 0; i < 20; ++i) {
    text.push_back(likeliest(context));
    context.push_back(text.back());
    if (context.size() > kWindow) context.assign(text.end() - kWindow / 2, text.end());
  }
  EXPECT_EQ(made, std::vector<int32_t>(text.begin() + 3, text.end()));
}

TEST_F(Sampling, TakesTheEndOfALongPrompt) {
  const std::vector<int32_t> prompt{3, 9, 20, 5, 11, 2};
  EXPECT_THAT(sampled(prompt, 4, {.tokens = 1, .temperature = 0}), ElementsAre(likeliest({20, 5, 11, 2})));
}

TEST_F(Sampling, RepeatsWithItsSeedAndEndsAtTheStopToken) {
  const SampleOptions options{.tokens = 30, .temperature = 1, .seed = 4};
  const std::vector<int32_t> made = sampled({1}, 64, options);
  EXPECT_EQ(made.size(), 30u);
  EXPECT_EQ(made, sampled({1}, 64, options));
  EXPECT_NE(made, sampled({1}, 64, {.tokens = 30, .temperature = 1, .seed = 5}));
  SampleOptions stopped = options;
  stopped.stop = made[7];
  const auto first = static_cast<size_t>(std::find(made.begin(), made.end(), made[7]) - made.begin());
  EXPECT_EQ(sampled({1}, 64, stopped), std::vector<int32_t>(made.begin(), made.begin() + static_cast<int64_t>(first)));
}

TEST_F(Sampling, EndsWhenItsListenerSaysSo) {
  Decoder decoder(recipe_, params_, 1, 64, {}, *executor_);
  int heard = 0;
  EXPECT_EQ(sample(decoder, {1}, {.tokens = 30}, [&](int32_t) { return ++heard < 5; }).size(), 5u);
  EXPECT_EQ(heard, 5);
}

TEST_F(Sampling, WorksInAWindowOfOneToken) { EXPECT_EQ(sampled({7}, 1, {.tokens = 3, .temperature = 0}).size(), 3u); }

}  // namespace
}  // namespace fairway::generate_test
