// Rows of text made together are the rows made in smaller groups, and each follows the model's own distribution.
#include "generate/sample_rows.h"

#include <gmock/gmock.h>

#include <set>

#include "backends/backends.h"
#include "generate/sample.h"
#include "generate/tiny_recipes.h"

namespace fairway::generate_test {
namespace {

constexpr int64_t kRows = 6, kLength = 20;

class SampleRows : public testing::Test {
 protected:
  SampleRows() : params_(parameter_table(recipe_), ParamStore::Gradients::none) { randomize(params_); }

  std::vector<int32_t> in_groups_of(int64_t together, RowSampling how) {
    Decoder decoder(recipe_, params_, together, kLength, {}, *executor_);
    std::vector<int32_t> text(kRows * kLength);
    how.vocab = recipe_.model.vocab;
    for (how.first_row = 0; how.first_row < kRows; how.first_row += together)
      sample_rows(
          decoder, how, queue_.pool(),
          std::span(text).subspan(static_cast<size_t>(how.first_row * kLength), static_cast<size_t>(together * kLength)));
    return text;
  }

  Recipe recipe_ = shrunk("pr1105");
  ParamStore params_;
  Queue queue_{2};
  std::unique_ptr<Executor> executor_ = make_executor(Backend::ref, queue_);
};

TEST_F(SampleRows, DoNotDependOnTheirGroup) {
  const std::vector<int32_t> text = in_groups_of(6, {.seed = 9});
  EXPECT_EQ(text, in_groups_of(2, {.seed = 9}));
  EXPECT_EQ(text, in_groups_of(1, {.seed = 9}));
  EXPECT_NE(text, in_groups_of(6, {.seed = 10}));
  std::set<int32_t> first;
  for (size_t row = 0; row < kRows; ++row) first.insert(text[row * kLength]);
  EXPECT_GT(first.size(), 2u);  // uniform over the vocabulary
}

TEST_F(SampleRows, FollowTheLogits) {
  const std::vector<int32_t> text = in_groups_of(6, {.temperature = 0, .first_token = 1});
  Decoder decoder(recipe_, params_, 1, kLength, {}, *executor_);
  const std::vector<int32_t> made = sample(decoder, {1}, {.tokens = kLength - 1, .temperature = 0});
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(text[row * kLength], 1);
    EXPECT_TRUE(std::equal(made.begin(), made.end(), text.begin() + static_cast<int64_t>(row * kLength) + 1)) << row;
  }
}

// The same numbers drawn by the host and by the program, on every backend of the CPU, text shorter than the cache included.
TEST_F(SampleRows, AreThoseThatTheProgramDraws) {
  for (const Backend backend : {Backend::ref, Backend::cpu}) {
    executor_ = make_executor(backend, queue_);
    for (const auto& [temperature, length] : {std::pair{0.8, kLength}, std::pair{1.3, kLength - 4}, std::pair{0.0, kLength}}) {
      const RowSampling how{.temperature = temperature, .seed = 5, .first_row = 2, .vocab = recipe_.model.vocab};
      Decoder by_host(recipe_, params_, 3, kLength, {}, *executor_);
      Decoder by_program(recipe_, params_, 3, kLength, {}, *executor_, Drawing{temperature});
      std::vector<int32_t> text(static_cast<size_t>(3 * length)), drawn(text.size()), again(text.size());
      std::vector<int64_t> told;
      sample_rows(by_host, how, queue_.pool(), text);
      sample_rows(by_program, how, queue_.pool(), drawn, [&](int64_t t) { told.push_back(t); });
      sample_rows(by_program, how, queue_.pool(), again);
      EXPECT_EQ(drawn, text);
      EXPECT_EQ(again, text);
      EXPECT_EQ(static_cast<int64_t>(told.size()), length);
      EXPECT_EQ(told.back(), length);
    }
  }
}

TEST_F(SampleRows, TellHowFarTheyAre) {
  Decoder decoder(recipe_, params_, 2, kLength, {}, *executor_);
  std::vector<int32_t> text(2 * 5);
  std::vector<int64_t> told;
  sample_rows(decoder, {.vocab = recipe_.model.vocab}, queue_.pool(), text, [&](int64_t t) { told.push_back(t); });
  EXPECT_THAT(told, testing::ElementsAre(1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace fairway::generate_test
