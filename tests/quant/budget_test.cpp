// What fits a model into a budget: the allocator and ±1 pruning.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "base/half.h"
#include "quant/bit_allocator.h"
#include "quant/prune.h"
#include "quant/small_model.h"

namespace fairway::quant_test {
namespace {

void meets_every_budget(SmallModel& small) {
  QuantReport report;
  const double natural = estimated_bits(small.quantize(report));
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue);
  for (int i = 0; i <= 36; ++i) {
    const double target = natural * (0.3 + 0.025 * i);
    const QuantizedModel model = allocator.at(target, report);
    const double bits = estimated_bits(model);
    EXPECT_LE(bits, target);
    if (target > allocator.least_bits() && target < allocator.most_bits()) {
      EXPECT_GE(bits, 0.995 * target) << target / natural;
    }
    ASSERT_EQ(report.tensors.size(), model.tensors.size());
  }
}

TEST(BitAllocator, MeetsEveryBudgetFromBelow) {
  SmallModel small;
  meets_every_budget(small);
}

// Rounding to a coarse step saves bits faster than it adds error, so at one price a tensor's step jumps.
TEST(BitAllocator, FillsWhatAJumpOfThePriceLeavesFree) {
  SmallModel small;
  small.recipe.quant.rule = QuantRule::rtn;
  meets_every_budget(small);
}

const QuantizedTensor& first_down(const QuantizedModel& model) {
  return *std::find_if(model.tensors.begin(), model.tensors.end(),
                       [](const QuantizedTensor& t) { return t.bank == ParamId::down && t.slice == 0; });
}

// Where the recipe allows it, and then with less damage in the same bits and with weights as large as they were.
TEST(BitAllocator, TakesATrellisWhereItGains) {
  SmallModel small;
  const auto made = [&](bool trellis) {
    small.recipe.quant.trellis = trellis;
    BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue);
    QuantReport report;
    const QuantizedModel model = allocator.at(3.5 * static_cast<double>(small.weights.flat_values().numel()), report);
    return std::pair{model, allocator.damage().of(report)};
  };
  const auto on_trellis = [](const QuantizedTensor& tensor) { return tensor.trellis; };
  const auto [rounded, more] = made(false);
  const auto [model, less] = made(true);
  EXPECT_THAT(rounded.tensors, testing::Not(testing::Contains(testing::Truly(on_trellis))));
  EXPECT_THAT(model.tensors, testing::Contains(testing::Truly(on_trellis)));
  EXPECT_LT(less, 0.95 * more);
  const QuantizedTensor& down = first_down(model);
  ASSERT_TRUE(down.trellis);
  std::vector<float> values(static_cast<size_t>(down.count()));
  dequantize(down, values);
  const float* w = small.weights.bank(ParamId::down).value.as<float>();
  double both = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    both += static_cast<double>(w[i]) * static_cast<double>(values[i]);
    squares += static_cast<double>(w[i]) * static_cast<double>(w[i]);
  }
  EXPECT_NEAR(both / squares, 1, 0.01);
}

TEST(BitAllocator, LosesNoMoreThanAnyUniformSettingOfTheSameSize) {
  SmallModel small;
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue);
  const auto compare = [&](const std::string& name, auto change) {
    Recipe uniform = small.recipe;
    uniform.quant.half_elements = 1024;  // the same tensors in integers
    change(uniform.quant);
    QuantReport plain, allocated;
    const QuantizedModel model = quantize_model(small.weights, uniform, &small.hessians, small.queue, plain);
    (void)allocator.at(estimated_bits(model), allocated);
    EXPECT_LT(allocator.damage().of(allocated), allocator.damage().of(plain)) << name;
  };
  for (const double clip : {8.0, 12.85, 20.0})
    compare(fmt::format("k = {}", clip), [&](QuantRecipe& quant) {
      quant.clip = {.attn = clip, .mlp = clip, .token = 127.0 / 31 * clip, .table = 127.0 / 31 * clip};
    });
  for (const int bits : {6, 7})
    compare(fmt::format("percentile clips, int{}", bits), [&](QuantRecipe& quant) {
      quant.scale = ScaleRule::percentile;
      quant.matrix_bits = bits;
    });
}

// At equal bits a row of small weights has the step of the others, not one of its own.
TEST(BitAllocator, RowsShareAStep) {
  SmallModel small;
  const Tensor& down = small.weights.bank(ParamId::down).value;
  for (int64_t i = 0; i < down.cols(); ++i) down.as<float>()[i] *= 0.1F;
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue);
  QuantReport report;
  const QuantizedModel model = allocator.at(0.5 * (allocator.least_bits() + allocator.most_bits()), report);
  const HalfScales& scale = first_down(model).scale;
  EXPECT_GT(from_half(scale[0]), 0);
  EXPECT_THAT(scale, testing::Each(scale[0]));
}

// A weight far out leaves its row a coarser step in eight bits, no coarser than that, and the other rows theirs.
TEST(BitAllocator, ARowGoesAsFineAsItsLargestWeightAllows) {
  SmallModel small;
  const Tensor& down = small.weights.bank(ParamId::down).value;
  down.as<float>()[5] = 1.5F;  // the others deviate by 0.05
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue);
  QuantReport report;
  const QuantizedModel model = allocator.at(2 * allocator.most_bits(), report);
  const QuantizedTensor& tensor = first_down(model);
  const double step = static_cast<double>(from_half(tensor.scale[0]));
  EXPECT_NEAR(tensor.q[5] * step, 1.5, step) << "it is not cut off";
  EXPECT_LE(step, 1.1 * 1.5 / 127);
  EXPECT_LT(static_cast<double>(from_half(tensor.scale[1])), 0.5 * step);
}

TEST(BitAllocator, SpendsWhereTheLossDependsOnIt) {
  SmallModel small;
  TensorMoments moments;
  for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe)) moments[plan.name()] = {.all = 1};
  const std::string chosen = "bank.up[1]";
  const auto error_of_chosen = [&](double moment) {
    moments[chosen] = {.all = moment};
    BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, single_process(), moments);
    QuantReport report;
    (void)allocator.at(0.5 * (allocator.least_bits() + allocator.most_bits()), report);
    for (const TensorReport& tensor : report.tensors)
      if (tensor.name == chosen) return tensor.loss;
    return 0.0;
  };
  const double usual = error_of_chosen(1), more = error_of_chosen(100);
  EXPECT_GT(more, 0);
  EXPECT_LT(more, usual / 10);  // at equal prices the loss goes with the inverse of the moment
}

// Rows that the loss depends on sixteen times as much have a quarter of the step, where moments say so.
TEST(BitAllocator, GivesRowsStepsByWhatTheyCount) {
  SmallModel small;
  TensorMoments moments;
  for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe)) moments[plan.name()] = {.all = 1};
  const std::string chosen = "bank.up[1]";
  const int64_t rows = small.recipe.model.mlp_hidden;
  for (int64_t row = 0; row < rows; ++row) moments[chosen].rows.push_back(row % 2 == 0 ? 0.125F : 2.0F);
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, single_process(), moments);
  QuantReport report;
  const QuantizedModel model = allocator.at(0.5 * (allocator.least_bits() + allocator.most_bits()), report);
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    if (report.tensors[i].name != chosen) continue;
    const std::vector<uint16_t>& scale = model.tensors[i].scale;
    EXPECT_NEAR(from_half(scale[0]) / from_half(scale[1]), 4, 0.01);
    EXPECT_GT(report.tensors[i].counted, 0);
    EXPECT_LT(report.tensors[i].counted, report.tensors[i].loss) << "errors lie where they count less";
  }
}

// Errors of outputs that go together make up for each other: at equal bits less of what counts is lost, also where one row in
// four of a large matrix was measured.
TEST(BitAllocator, MakesUpForErrorsBetweenOutputs) {
  for (const std::vector<std::string>& sizes : {std::vector<std::string>{}, {"model.dim=256", "model.mlp_hidden=1024"}}) {
    SmallModel small(sizes);
    small.recipe.quant.trellis = false;
    TensorMoments moments;
    const std::string chosen = "bank.up[1]";
    for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe)) moments[plan.name()] = {.all = 1};
    const Hessian gradients = factor_model(small.recipe.model.mlp_hidden, 6, 20, 5);
    OpRunner runner(small.queue);
    const OutputFactor outputs = factorize_outputs(runner, gradients);
    const auto lost = [&](bool known) {
      moments[chosen].outputs = known ? gradients : Hessian{};
      BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, single_process(), moments);
      QuantReport report;
      const double target = 0.5 * (allocator.least_bits() + allocator.most_bits());
      const QuantizedModel model = allocator.at(target, report);
      EXPECT_GE(estimated_bits(model), 0.995 * target);
      for (size_t i = 0; i < model.tensors.size(); ++i) {
        if (report.tensors[i].name != chosen) continue;
        return report.tensors[i].loss * std::exp2(2 * report.tensors[i].entropy);
      }
      return 0.0;
    };
    const double both = lost(true), one = lost(false);  // of one side tr(D·H·Dᵀ), which is tr(G·D·H·Dᵀ) of errors by chance
    EXPECT_GT(both, 0);
    EXPECT_LT(both, 0.8 * one) << outputs.side << " rows";
  }
}

// Of a table the moments of its rows' gradients say which errors cancel: at equal bits GPTQ loses less by them than rounding.
TEST(BitAllocator, SpreadsErrorsOfTablesByTheirGradients) {
  SmallModel small;
  small.recipe.quant.trellis = false;
  TensorMoments moments;
  std::optional<TensorPlan> table;
  for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe)) {
    moments[plan.name()] = {.all = 1};
    if (plan.role == QuantRole::table && plan.point.empty() && plan.weight.rows >= 64) table = plan;
  }
  ASSERT_TRUE(table);
  const Hessian gradients = factor_model(table->weight.cols, 4, 40, 77);
  const auto loss_at_bits = [&](bool known) {
    moments[table->name()].columns = known ? gradients : Hessian{};
    BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, single_process(), moments);
    QuantReport report;
    const QuantizedModel model = allocator.at(0.4 * allocator.least_bits() + 0.6 * allocator.most_bits(), report);
    for (size_t i = 0; i < model.tensors.size(); ++i) {
      if (report.tensors[i].name != table->name()) continue;
      EXPECT_EQ(report.tensors[i].gptq, known);
      EXPECT_EQ(model.tensors[i].columns.empty(), !known);
      TensorReport measured;
      OpRunner runner(small.queue);
      measure(*table, model.tensors[i], runner, &gradients, measured);
      return measured.loss * std::exp2(2 * report.tensors[i].entropy);
    }
    return 0.0;
  };
  const double spread = loss_at_bits(true), rounded = loss_at_bits(false);
  EXPECT_GT(spread, 0);
  EXPECT_LT(spread, 0.7 * rounded);
}

// A tensor that the loss does not depend on costs nothing, however it is stored; its sensitivity is in another unit.
TEST(BitAllocator, SpendsNothingWhereTheLossDoesNotDependOnIt) {
  SmallModel small;
  TensorMoments moments;
  for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe)) moments[plan.name()] = {.all = 1};
  const std::string idle = "bank.up[1]";
  moments[idle] = {};
  BitAllocator allocator(small.weights, small.recipe, &small.hessians, small.queue, single_process(), moments);
  QuantReport report;
  (void)allocator.at(0.5 * (allocator.least_bits() + allocator.most_bits()), report);
  double least = 100;
  for (const TensorReport& tensor : report.tensors) least = std::min(least, tensor.entropy);
  for (const TensorReport& tensor : report.tensors)
    if (tensor.name == idle) {
      EXPECT_EQ(tensor.entropy, least);
    }
}

TEST(BitAllocator, RepeatsBitForBitAndSaysWhenABudgetIsTooSmall) {
  SmallModel small;
  QuantReport report;
  BitAllocator first(small.weights, small.recipe, &small.hessians, small.queue);
  Queue alone(1);
  BitAllocator second(small.weights, small.recipe, &small.hessians, alone);
  const double target = 0.5 * (first.least_bits() + first.most_bits());
  const QuantizedModel once = first.at(target, report);
  (void)second.at(0.7 * target, report);
  (void)second.at(target, report);
  EXPECT_TRUE(first.at(target, report).tensors == once.tensors);
  EXPECT_TRUE(second.at(target, report).tensors == once.tensors);
  EXPECT_GT(estimated_bits(first.at(1000, report)), 1000);
}

TEST(Prune, OrdersByStepAndKeepsTies) {
  SmallModel small;
  QuantReport report;
  QuantizedModel model = small.quantize(report);
  const auto list = prune_candidates(model, small.weights, small.recipe, &small.hessians, PruneScore::step);
  int64_t ones = 0;
  for (const QuantizedTensor& t : model.tensors)
    if (row_of(t.bank).block == BlockPart::matrices)
      ones += std::count_if(t.q.begin(), t.q.end(), [](int8_t q) { return q == 1 || q == -1; });
  ASSERT_EQ(static_cast<int64_t>(list.size()), ones);
  for (size_t i = 0; i < list.size(); ++i) {
    const QuantizedTensor& t = model.tensors[list[i].tensor];
    const double step = from_half(t.scale[list[i].index / static_cast<size_t>(t.cols)]);
    ASSERT_EQ(list[i].score, step * step);
    if (i == 0) continue;
    ASSERT_TRUE(list[i - 1].score < list[i].score ||
                (list[i - 1].score == list[i].score &&
                 std::pair(list[i - 1].tensor, list[i - 1].index) < std::pair(list[i].tensor, list[i].index)));
  }
  const double before = estimated_bits(model);
  prune(model, std::span(list).first(list.size() / 2));
  EXPECT_LT(estimated_bits(model), before);
  for (size_t i = 0; i < list.size(); ++i) ASSERT_EQ(model.tensors[list[i].tensor].q[list[i].index] == 0, i < list.size() / 2);
}

TEST(Prune, TheReportTellsOfTheModelAsItIsAfterwards) {
  SmallModel small;
  QuantReport report;
  QuantizedModel model = small.quantize(report);
  const QuantReport before = report;
  const auto list = prune_candidates(model, small.weights, small.recipe, &small.hessians, PruneScore::step);
  prune(model, list);
  measure_pruned(model, small.weights, small.recipe, &small.hessians, small.queue, report);
  const auto plans = tensor_plans(small.weights, small.recipe);
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].matrix()) continue;
    std::vector<float> restored(static_cast<size_t>(plans[i].weight.count()));
    dequantize(model.tensors[i], restored);
    double squares = 0;
    for (size_t k = 0; k < restored.size(); ++k) squares += std::pow(double{plans[i].weight.data[k]} - double{restored[k]}, 2);
    EXPECT_NEAR(report.tensors[i].mean_square, squares / static_cast<double>(restored.size()), 1e-9);
    EXPECT_GT(report.tensors[i].loss, before.tensors[i].loss) << plans[i].name();
    EXPECT_LT(report.tensors[i].entropy, before.tensors[i].entropy) << plans[i].name();
  }
}

TEST(Prune, TheHessianScoreIsTheIncreaseOfADiagonalLoss) {
  SmallModel small({"quant.rule=rtn"});
  QuantReport report;
  const QuantizedModel model = small.quantize(report);
  const auto list = prune_candidates(model, small.weights, small.recipe, &small.hessians, PruneScore::hessian);
  const auto plans = tensor_plans(small.weights, small.recipe);
  ASSERT_FALSE(list.empty());
  for (const size_t i : {size_t{0}, list.size() / 2, list.size() - 1}) {
    const QuantizedTensor& t = model.tensors[list[i].tensor];
    const TensorPlan& plan = plans[list[i].tensor];
    const double step = from_half(t.scale[list[i].index / static_cast<size_t>(t.cols)]);
    const double w = plan.weight.data[list[i].index], kept = w - step * t.q[list[i].index];
    const auto column = static_cast<int64_t>(list[i].index) % t.cols;
    EXPECT_NEAR(list[i].score, small.hessians.find(plan.point)->at(column, column) * (w * w - kept * kept), 1e-9);
  }
  EXPECT_LE(list.front().score, list.back().score);
}

}  // namespace
}  // namespace fairway::quant_test
