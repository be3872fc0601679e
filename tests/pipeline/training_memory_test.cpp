// What training is planned to take: the same program in float and, on a device, in bf16.
#include "pipeline/training_memory.h"

#include <gtest/gtest.h>

namespace fairway::pipeline {
namespace {

TEST(TrainingMemory, GrowsWithTheMicroBatch) {
  const Recipe recipe = load_recipe("smoke");
  for (const Backend backend : {Backend::cpu, Backend::cuda_f32, Backend::cuda}) {
    const double one = training_bytes(recipe, recipe.data.seq_len, backend);
    EXPECT_GT(one, 0);
    EXPECT_GT(training_bytes(recipe, 4 * recipe.data.seq_len, backend), one);
  }
}

TEST(TrainingMemory, AFloatProgramTakesMoreThanOneInBf16) {
  for (const char* name : {"pr1105", "record"}) {
    const Recipe recipe = load_recipe(name);
    const int64_t tokens = 98'304;
    const double floats = training_bytes(recipe, tokens, Backend::cuda_f32),
                 halves = training_bytes(recipe, tokens, Backend::cuda);
    EXPECT_LT(halves, 0.75 * floats) << name;
    EXPECT_GT(halves, 0.25 * floats) << name;
  }
}

// docs/performance.md: training pr1105 took 18.5 GB of an H200.
TEST(TrainingMemory, IsWhatWasMeasuredOnADevice) {
  EXPECT_NEAR(training_bytes(load_recipe("pr1105"), 98'304, Backend::cuda), 18.5e9, 0.5e9);
}

}  // namespace
}  // namespace fairway::pipeline
