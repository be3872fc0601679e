// The model of a step on several GPUs: its bytes are those of the optimizer, its order of schedules is sane, and it comes near
// the published steps it was not made from.
#include "bench/scaling.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "optim/gradient_layout.h"

namespace fairway::bench {
namespace {

TEST(Scaling, ComesNearThePublishedSteps) {
  for (const Anchor& anchor : published_steps()) {
    const StepModel model = model_step(load_recipe(anchor.recipe), find_gpu("h100"), {});
    EXPECT_NEAR(model.step_ms / anchor.published_ms, 1, 0.05) << anchor.recipe;
  }
}

TEST(Scaling, SendsTheBytesOfTheOptimizer) {
  // The published stack sends bf16, whatever the recipe says; this program what the recipe says.
  for (const auto& [schedule, sent] : {std::pair{Schedule::published, "f32"},
                                       {Schedule::packed, "f32"},
                                       {Schedule::packed, "bf16"},
                                       {Schedule::early, "f32"}}) {
    const bool published = schedule == Schedule::published;
    const auto recipe_of = [](const std::string& precision) {
      return load_recipe("pr1105", std::vector<std::string>{"optim.exchange_precision=" + precision});
    };
    const Recipe recipe = recipe_of(sent), traffic_of = recipe_of(published ? "bf16" : sent);
    const ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
    const GradientLayout layout = gradient_layout(traffic_of, params, 8);
    const StepTraffic want = step_traffic(layout, 8);
    const StepModel model = model_step(recipe, find_gpu("h100"), {.schedule = schedule});
    double banks = 0, replicated = 0;
    for (const Collective& c : model.collectives) {
      if (c.name.starts_with("all-reduce"))
        replicated += c.bytes;
      else if (!c.name.ends_with("clip coefficients"))
        banks += c.bytes;
    }
    int64_t reduced = want.reduce_scatter;
    if (schedule == Schedule::early) {  // the padding stays at home (tests/comm, TrafficOfEarlySlices)
      reduced = 0;
      for (const ShardedBank& bank : layout.matrices) reduced += bank.shape.numel() / 8 * 7 * 4;
    }
    EXPECT_NEAR(banks, static_cast<double>(reduced + want.all_gather), 1) << name_of(schedule);
    if (!published) {
      EXPECT_NEAR(replicated, static_cast<double>(want.replicated), 1) << name_of(schedule);
    }
  }
}

TEST(Scaling, BetterSchedulesAreNotSlower) {
  const Recipe recipe = load_recipe("pr1105");
  const auto step = [&](Schedule schedule, const char* gpu) {
    return model_step(recipe, find_gpu(gpu), {.schedule = schedule});
  };
  for (const char* gpu : {"h100", "h200"}) {
    EXPECT_LT(step(Schedule::packed, gpu).step_ms, step(Schedule::published, gpu).step_ms);
    EXPECT_LE(step(Schedule::early, gpu).step_ms, step(Schedule::packed, gpu).step_ms);
    for (Schedule schedule : {Schedule::published, Schedule::packed, Schedule::early}) {
      const StepModel model = step(schedule, gpu);
      EXPECT_GE(model.hidden(), 0) << name_of(schedule);
      EXPECT_LE(model.hidden(), 1) << name_of(schedule);
      EXPECT_GE(model.step_ms, model.passes_ms + model.exposed_ms) << name_of(schedule);
    }
  }
  EXPECT_LT(step(Schedule::packed, "h200").step_ms, step(Schedule::packed, "h100").step_ms);
}

// A looped layer's slice leaves after the backward of its first pass, as late as the layers before it allow.
TEST(Scaling, EarlySlicesOfLoopedLayersWaitForTheirFirstPass) {
  const auto start_of = [](const Recipe& recipe, int64_t layer) {
    const StepModel model = model_step(recipe, find_gpu("h200"), {.passes_ms = 60, .schedule = Schedule::early});
    for (const Collective& c : model.collectives)
      if (c.name == "reduce-scatter layer " + std::to_string(layer)) return c.start_ms;
    return -1.0;
  };
  Recipe recipe = load_recipe("pr1105");
  recipe.model.loop.count = 0;
  const double plain_last = start_of(recipe, 10), plain_looped = start_of(recipe, 4);
  recipe.model.loop = {.start = 4, .end = 5, .count = 2};
  EXPECT_LT(start_of(recipe, 10), plain_last) << "one of 15 passes instead of one of 11";
  EXPECT_NEAR(start_of(recipe, 4), 20 + 40.0 * 11 / 15, 1e-9);
  EXPECT_GT(start_of(recipe, 4), plain_looped);
  EXPECT_LT(start_of(recipe, 6), start_of(recipe, 5));
}

TEST(Scaling, MeasuredPassesTakeThePlaceOfTheTable) {
  const StepModel model = model_step(load_recipe("pr1105"), find_gpu("h200"), {.passes_ms = 50, .schedule = Schedule::packed});
  EXPECT_EQ(model.passes_ms, 50);
  EXPECT_LT(model.step_ms, 60);
}

TEST(Scaling, BytesThatAreHalvedTakeLessTime) {
  Recipe recipe = load_recipe("pr1105");
  const StepModel floats = model_step(recipe, find_gpu("h100"), {.schedule = Schedule::packed});
  recipe.optim.exchange_precision = Precision::bf16;
  const StepModel halves = model_step(recipe, find_gpu("h100"), {.schedule = Schedule::packed});
  EXPECT_LT(halves.wire_ms, floats.wire_ms);
  EXPECT_LT(halves.exposed_ms, floats.exposed_ms);
}

TEST(Scaling, RefusesEarlySlicesOfWhatIsRoundedLater) {
  Recipe recipe = load_recipe("pr1105");
  recipe.optim.exchange_precision = Precision::bf16;
  EXPECT_THROW(model_step(recipe, find_gpu("h100"), {.schedule = Schedule::early}), InputError);
}

TEST(Scaling, RefusesUnknownNames) {
  EXPECT_THROW(find_gpu("v100"), InputError);
  EXPECT_THROW(find_schedule("late"), InputError);
}

}  // namespace
}  // namespace fairway::bench
