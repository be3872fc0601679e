// Lens, calibration error and sensitivity on small models: against the model's own loss, against counts made by hand, and
// against weights rounded by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "analysis/calibration_error.h"
#include "analysis/logit_lens.h"
#include "analysis/sensitivity.h"
#include "analysis/spectra.h"
#include "model/named_bank.h"
#include "quant/quantize_model.h"
#include "score/tiny_score.h"

namespace fairway {
namespace {

using score_test::kContext;

struct TinyAnalysis {
  explicit TinyAnalysis(bool lanes = false, int threads = 2)
      : recipe(score_test::tiny_recipe(lanes)),
        model(score_test::tiny_model(recipe)),
        weights(std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none)),
        machine(threads) {
    model.load(*weights);
  }
  AnalysisInput input() {
    return {.recipe = recipe,
            .stage = model.stage,
            .weights = weights,
            .stream = stream,
            .row_length = kContext,
            .executor = *machine.executor,
            .pool = machine.queue.pool()};
  }
  double plain_loss() {
    double sum = 0;
    const AnalysisInput in = input();
    TokenRows rows(in);
    rows.each([&](int64_t, int64_t count) {
      for (int64_t i = 0; i < count * kContext; ++i) sum += static_cast<double>(rows.model().nll()[static_cast<size_t>(i)]);
    });
    return sum / static_cast<double>(in.targets());
  }
  Recipe recipe;
  ScoredModel model;
  std::shared_ptr<ParamStore> weights;
  std::vector<uint16_t> stream = score_test::tiny_stream(23 * kContext);  // more rows than a batch holds, the last not full
  score_test::Machine machine;
};

TEST(TokenRows, GiveTheScorersLoss) {
  TinyAnalysis tiny;
  const ScoreSettings plain = score_test::settings_of(tiny.recipe, ScoreMode::plain);
  const ScoreLedger ledger = score_test::score(tiny.model, plain, tiny.stream);
  double sum = 0;
  for (int64_t target = 1; target <= ledger.targets(); ++target) sum += static_cast<double>(ledger.nll(target));
  EXPECT_NEAR(tiny.plain_loss(), sum / static_cast<double>(ledger.targets()), 1e-12);
}

TEST(Lens, EndsWithTheModelsOwnLoss) {
  for (const bool lanes : {false, true}) {
    TinyAnalysis tiny(lanes);
    const std::vector<LensLayer> lens = measure_lens(tiny.input());
    ASSERT_EQ(lens.size(), lanes ? 7U : 3U);  // two of the five layers run twice
    EXPECT_NEAR(lens.back().loss, tiny.plain_loss(), 1e-6);
    EXPECT_NE(lens[0].loss, lens[1].loss);
    EXPECT_EQ(lens.back().layer, tiny.recipe.model.layers - 1);
    EXPECT_EQ(lens[lanes ? 3 : 2].pass, lanes ? 1 : 0);
  }
}

TEST(Lens, OfAModelThatCopiesSeesTheTokenItself) {
  TinyAnalysis tiny;  // logits of the stream x = embedding of the token: the largest is the token's own
  for (const ParamBank& bank : tiny.weights->banks())
    if (bank.info.name != "embed.token") std::fill_n(bank.value.as<float>(), bank.value.numel(), 0.0F);
  const Tensor smear = bank_named(*tiny.weights, "smear.gate").value;
  std::fill_n(smear.as<float>(), smear.numel(), -30.0F);  // closed
  const Tensor mix = bank_named(*tiny.weights, "block.resid_mix").value;
  for (int64_t layer = 0; layer < 3; ++layer) std::fill_n(mix.slice(layer).as<float>(), mix.cols(), 1.0F);
  for (size_t i = 0; i < tiny.stream.size(); ++i) tiny.stream[i] = static_cast<uint16_t>(3 + i / 4);  // each token four times
  tiny.stream.resize(2 * kContext + 1);
  const std::vector<LensLayer> lens = measure_lens(tiny.input());
  EXPECT_NEAR(lens[0].accuracy, 0.75, 1e-9);
  EXPECT_EQ(lens[0].loss, lens[1].loss);
}

TEST(Calibration, CountsByHand) {
  CalibrationReport report;
  for (const bool correct : {true, true, true, false}) report.add(0.72, correct, 1);  // accuracy 0.75
  for (const bool correct : {true, false}) report.add(0.96, correct, 0.5);            // accuracy 0.5
  report.add(1.0, true, 0);
  EXPECT_EQ(report.bins()[14].count, 4);
  EXPECT_EQ(report.bins()[19].count, 3);
  EXPECT_NEAR(report.expected_error(), (4 * 0.03 + 3 * std::abs(2.0 / 3 - 2.92 / 3)) / 7, 1e-12);
  EXPECT_NEAR(report.accuracy(), 5.0 / 7, 1e-12);
  EXPECT_NEAR(report.entropy(), 5.0 / 7, 1e-12);
  EXPECT_NEAR(report.confidence(), (4 * 0.72 + 2.92) / 7, 1e-12);
}

TEST(Calibration, OfAModelThatKnowsNothingIsUniform) {
  TinyAnalysis tiny;
  const Tensor table = bank_named(*tiny.weights, "embed.token").value;
  std::fill_n(table.as<float>(), table.numel(), 0.0F);
  const CalibrationReport report = measure_calibration(tiny.input());
  EXPECT_EQ(report.count(), 23 * kContext);
  EXPECT_NEAR(report.confidence(), 1.0 / score_test::kVocab, 1e-6);
  EXPECT_NEAR(report.entropy(), std::log(static_cast<double>(score_test::kVocab)), 1e-6);
  EXPECT_NEAR(report.expected_error(), std::abs(report.accuracy() - report.confidence()), 1e-9);
}

TEST(Sensitivity, EqualsLossesOfWeightsRoundedByHand) {
  TinyAnalysis tiny;
  const double base = tiny.plain_loss();
  const auto bytes = tiny.weights->flat_values().spec.bytes();
  std::vector<std::byte> before(tiny.weights->flat_values().data, tiny.weights->flat_values().data + bytes);
  std::vector<std::pair<int64_t, int64_t>> told;
  AnalysisInput input = tiny.input();
  input.progress = [&](int64_t done, int64_t total) { told.emplace_back(done, total); };
  const SensitivityReport report = measure_sensitivity(input, tiny.machine.queue, {6, 3});
  EXPECT_EQ(std::memcmp(before.data(), tiny.weights->flat_values().data, bytes), 0) << "the weights are not as they were";
  EXPECT_NEAR(report.loss, base, 1e-12);
  ASSERT_EQ(report.matrices.size(), 18U);
  EXPECT_EQ(told.size(), 1U + 2 * (18 + 3 + 1));
  EXPECT_EQ(told.back(), std::make_pair(told.back().second, told.back().second));

  const std::vector<TensorPlan> plans = tensor_plans(*tiny.weights, tiny.recipe);
  ThreadPool& pool = tiny.machine.queue.pool();
  const auto round_by_hand = [&](const TensorPlan& plan) {
    std::vector<float> best;
    double least = std::numeric_limits<double>::infinity();
    for (const double percentile : kClipPercentiles) {
      const HalfScales scales = percentile_scales(plan.weight, percentile, 3, pool);
      const std::vector<int8_t> q = round_to_grid(plan.weight, scales, 3, pool);
      if (const double error = squared_error(plan.weight, q, scales, pool); error < least)
        least = error, best = error_of(plan.weight, q, scales, pool);
    }
    float* to = tiny.weights->bank(plan.bank).value.slice(plan.slice).as<float>();
    for (size_t i = 0; i < best.size(); ++i) to[i] -= best[i];
  };
  for (const TensorPlan& plan : plans)
    if (plan.role == QuantRole::down && plan.slice == 1) round_by_hand(plan);
  const auto down = std::find_if(report.matrices.begin(), report.matrices.end(),
                                 [](const auto& m) { return m.role == QuantRole::down && m.layer == 1; });
  EXPECT_EQ(down->name, "bank.down[1]");
  EXPECT_NEAR(down->change[1].nats, tiny.plain_loss() - base, 1e-6);
  EXPECT_GT(std::abs(report.all[1].nats), std::abs(report.all[0].nats));  // 3 bits against 6
  for (const MatrixSensitivity& m : report.matrices) EXPECT_GT(m.mean_square[1], 30 * m.mean_square[0]) << m.name;
  EXPECT_GT(down->change[1].error, 0);
  const auto at = static_cast<size_t>(down - report.matrices.begin());
  EXPECT_NEAR(report.upgrade(at), down->change[1].nats - down->change[0].nats, 1e-15);
  EXPECT_NEAR(report.upgrade_per_mbit(at), report.upgrade(at) / (3e-6 * 32 * 48), 1e-9);
}

TEST(Spectra, CoverEveryMatrixOfTheLayers) {
  TinyAnalysis tiny;
  const SpectraReport report = measure_spectra(*tiny.weights, tiny.recipe, tiny.machine.queue.pool(), {});
  ASSERT_EQ(report.matrices.size(), 18U);
  ASSERT_EQ(report.roles.size(), 6U);
  EXPECT_EQ(report.matrices[3].name, "bank.kv[0]");
  EXPECT_STREQ(role_name(report.matrices[17].role), "down");
  EXPECT_EQ(report.matrices[17].layer, 2);
  for (const Spectrum& s : report.matrices) {
    EXPECT_GE(s.rank99, s.rank95);
    EXPECT_TRUE(s.stable_rank > 1 && s.stable_rank <= static_cast<double>(std::min(s.rows, s.cols))) << s.name;
    EXPECT_GT(s.condition, 1);
  }
  EXPECT_NEAR(report.roles[0].utilization,
              (report.matrices[0].utilization + report.matrices[1].utilization + report.matrices[2].utilization) / 3, 1e-15);
}

}  // namespace
}  // namespace fairway
