// Decoding token by token gives the logits of the whole forward pass, for every recipe and both stages of looped ones.
#include "generate/decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/backends.h"
#include "generate/scored_logits.h"
#include "score/eval_model.h"

namespace fairway::generate_test {
namespace {

constexpr int64_t kLength = 37;  // more than two blocks of cached keys, not whole ones

class Decoding : public testing::TestWithParam<Backend> {
 protected:
  void expect_equal(const Recipe& recipe, ModelStage stage, int64_t rows) {
    Queue queue(1);
    const auto executor = make_executor(GetParam(), queue);
    EvalModel whole(recipe, rows, kLength, stage, *executor);
    randomize(whole.params());
    const std::vector<int32_t> tokens = tokens_of(recipe, rows * kLength, 3);
    std::copy(tokens.begin(), tokens.end(), whole.tokens().begin());
    std::fill(whole.targets().begin(), whole.targets().end(), 0);
    whole.run();
    Decoder decoder(recipe, whole.params(), rows, kLength, stage, *executor);
    for (int again = 0; again < 2; ++again) {  // the second time over what the first left in the cache
      decoder.restart();
      std::vector<int32_t> next(static_cast<size_t>(rows));
      for (int64_t t = 0; t < (again == 0 ? kLength : 5); ++t) {
        for (int64_t row = 0; row < rows; ++row)
          next[static_cast<size_t>(row)] = tokens[static_cast<size_t>(row * kLength + t)];
        decoder.step(next);
        for (int64_t row = 0; row < rows; ++row)
          ASSERT_LE(distance(decoder.logits(row), whole.logits(row * kLength + t)), 1e-5) << "row " << row << " token " << t;
      }
    }
    EXPECT_EQ(decoder.position(), 5);
  }
};

TEST_P(Decoding, EqualsTheWholeForwardPass) {
  for (const StageCase& stage : every_stage()) {
    for (int64_t rows : {1, 3}) {
      SCOPED_TRACE(stage.name + (stage.looped ? " looped, rows " : ", rows ") + std::to_string(rows));
      expect_equal(shrunk(stage.name), {.looped = stage.looped}, rows);
    }
  }
}

TEST_P(Decoding, WorksWithoutRotation) {
  Recipe recipe = shrunk("smoke");
  recipe.model.rope.dims = 0;
  expect_equal(recipe, {}, 2);
}

INSTANTIATE_TEST_SUITE_P(Backends, Decoding, testing::Values(Backend::ref, Backend::cpu),
                         [](const auto& backend) { return std::string(backend_name(backend.param)); });

TEST(Decoder, BitsDoNotDependOnTheTeam) {
  const Recipe recipe = shrunk("pr1105");
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  randomize(params);
  Queue alone(1), team(3);
  const auto first = make_executor(Backend::cpu, alone), second = make_executor(Backend::cpu, team);
  constexpr int64_t kRows = 40;  // enough work that rows are shared out
  Decoder a(recipe, params, kRows, 64, {}, *first), b(recipe, params, kRows, 64, {}, *second);
  for (int64_t t = 0; t < 64; ++t) {
    const std::vector<int32_t> tokens = tokens_of(recipe, kRows, static_cast<uint64_t>(t));
    a.step(tokens), b.step(tokens);
    for (int64_t row = 0; row < kRows; ++row)
      ASSERT_TRUE(std::ranges::equal(a.logits(row), b.logits(row))) << "row " << row << " token " << t;
  }
}

}  // namespace
}  // namespace fairway::generate_test
