// Routing of every tensor, fallbacks that are told, exact dequantization, mixed widths and low-rank correction.
#include "quant/quantize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "model/named_bank.h"
#include "quant/lqer.h"
#include "quant/mixed_bits.h"
#include "quant/small_model.h"

namespace fairway::quant_test {
namespace {

using ::testing::HasSubstr;

const TensorReport& find(const QuantReport& report, const std::string& name) {
  for (const TensorReport& tensor : report.tensors)
    if (tensor.name == name) return tensor;
  throw WorkError("no tensor " + name);
}

TEST(QuantizeModel, RoutesEveryTensorByItsRole) {
  SmallModel small({"quant.half_elements=10000", "quant.attn_bits=5", "quant.gate_bits=8", "quant.table_bits=7"});
  QuantReport report;
  const QuantizedModel model = small.quantize(report);
  ASSERT_EQ(model.tensors.size(), report.tensors.size());
  EXPECT_EQ(find(report, "bank.qo[3]").bits, 5);
  EXPECT_EQ(find(report, "bank.kv[0]").bits, 5);
  EXPECT_EQ(find(report, "bank.down[1]").bits, 6);
  EXPECT_TRUE(find(report, "bank.down[1]").gptq);
  EXPECT_EQ(find(report, "embed.token").bits, 8);
  EXPECT_TRUE(find(report, "embed.token").gptq);
  EXPECT_EQ(find(report, "value_embed.table").bits, 7) << "512 x 32 is more than half_elements";
  EXPECT_FALSE(find(report, "value_embed.table").gptq);
  EXPECT_EQ(find(report, "bigram.table").coding, TensorCoding::half) << "256 x 32 is not";
  EXPECT_EQ(find(report, "block.attn_gate").scale_rule, "absmax");
  EXPECT_EQ(find(report, "block.resid_mix").coding, TensorCoding::half);
  EXPECT_TRUE(report.fallbacks().empty());
  EXPECT_EQ(model.recipe_hash, recipe_hash(small.recipe));
}

TEST(QuantizeModel, DequantizingGivesStepTimesLevelForEveryWeight) {
  SmallModel small({"quant.lqer.tensors=2"});
  QuantReport report;
  const QuantizedModel model = small.quantize(report);
  ParamStore out(parameter_table(small.recipe), ParamStore::Gradients::none);
  dequantize(model, out);
  int corrected = 0;
  for (const QuantizedTensor& t : model.tensors) {
    const float* got = out.bank(t.bank).value.as<float>() + std::max<int64_t>(t.slice, 0) * t.count();
    corrected += t.correction.rank > 0 ? 1 : 0;
    for (int64_t i = 0; i < t.count() && t.correction.rank == 0; ++i) {
      const auto at = static_cast<size_t>(i);
      const float want = t.coding == TensorCoding::half ? from_half(t.halves[at])
                                                        : from_half(t.scale[at / static_cast<size_t>(t.cols)]) * t.q[at];
      ASSERT_EQ(got[i], want) << name_of(t.bank) << " " << i;
    }
  }
  EXPECT_EQ(corrected, 2);
  ParamStore again(parameter_table(small.recipe), ParamStore::Gradients::none);
  dequantize(model, again);
  EXPECT_EQ(std::memcmp(out.flat_values().data, again.flat_values().data, out.flat_values().spec.bytes()), 0);
}

TEST(QuantizeModel, ThreadsDoNotChangeTheResult) {
  SmallModel small({"quant.scale=percentile", "quant.lqer.tensors=1"});
  QuantReport report;
  const QuantizedModel two = small.quantize(report);
  Queue alone(1);
  const QuantizedModel one = quantize_model(small.weights, small.recipe, &small.hessians, alone, report);
  EXPECT_TRUE(one.tensors == two.tensors);
}

TEST(QuantizeModel, MissingAndIndefiniteHessiansAreToldAndRounded) {
  SmallModel small;
  std::vector<double> indefinite(64 * 64, 1e9);
  for (size_t i = 0; i < 64; ++i) indefinite[i * 64 + i] = 1;
  small.hessians.put("layer0.attn_out", 64, indefinite);
  QuantReport report;
  const QuantizedModel model = small.quantize(report);
  ASSERT_EQ(report.fallbacks().size(), 1U);
  EXPECT_THAT(report.fallbacks()[0],
              HasSubstr("bank.qo[2] was rounded instead of quantized by GPTQ: its Hessian is not positive"));
  EXPECT_EQ(find(report, "bank.qo[2]").damping_retries, 5);
  const QuantizedModel blind = quantize_model(small.weights, small.recipe, nullptr, small.queue, report);
  EXPECT_EQ(report.fallbacks().size(), 2U * 6U + 1U);
  EXPECT_THAT(report.fallbacks()[0], HasSubstr("embed.token was rounded"));
  EXPECT_EQ(blind.tensors[1].scale, model.tensors[1].scale);
}

TEST(QuantizeModel, WeightsThatAreNotFiniteAreRefused) {
  SmallModel small;
  small.weights.bank(ParamId::up).value.as<float>()[64 * 192 + 70] = NAN;
  QuantReport report;
  try {
    small.quantize(report);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bank.up[1]: the weight at row 1, column 6 is nan"));
  }
}

TEST(QuantizeModel, ChoosingTheClipByTheHessianNeverLosesMore) {
  for (const char* rule : {"gptq", "gptq_lite"}) {
    const std::string set = std::string("quant.rule=") + rule;
    // Weights large enough that the clips differ.
    SmallModel mse({"quant.scale=percentile", "quant.choice=mse", set}), weighted({"quant.scale=percentile", set});
    for (SmallModel* small : {&mse, &weighted})
      for (const char* bank : {"bank.qo", "bank.up"}) {
        const Tensor value = bank_named(small->weights, bank).value;
        for (int64_t i = 0; i < value.numel(); ++i) value.as<float>()[i] *= 40;
      }
    QuantReport by_mse, by_hessian;
    (void)mse.quantize(by_mse);
    (void)weighted.quantize(by_hessian);
    for (size_t i = 0; i < by_mse.tensors.size(); ++i) {
      EXPECT_LE(by_hessian.tensors[i].loss, by_mse.tensors[i].loss) << by_mse.tensors[i].name;
      EXPECT_LE(by_mse.tensors[i].mean_square, by_hessian.tensors[i].mean_square) << by_mse.tensors[i].name;
    }
  }
}

TEST(QuantizeModel, TheLargestTracesKeepTheirBits) {
  SmallModel small({"quant.mixed.count=3", "quant.mixed.bits=5"});
  QuantReport report;
  (void)small.quantize(report);
  std::vector<std::pair<double, int>> matrices;
  for (const TensorPlan& plan : tensor_plans(small.weights, small.recipe))
    if (plan.matrix()) matrices.emplace_back(small.hessians.find(plan.point)->trace(), find(report, plan.name()).bits);
  ASSERT_EQ(matrices.size(), 12U);
  std::stable_sort(matrices.begin(), matrices.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  EXPECT_EQ(std::count_if(matrices.begin(), matrices.end(), [](const auto& m) { return m.second == 6; }), 3);
  for (const auto& [trace, bits] : matrices)
    if (bits == 6) {
      EXPECT_GE(trace, matrices[2].first);
    }
}

TEST(Lqer, FindsTheLeadingVectorsOfEitherShape) {
  Queue queue(2);
  OpRunner runner(queue);
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{40, 70}, {70, 40}}) {
    Matrix m = gaussian(rows, cols, 20, 0.001F);
    const Matrix left = gaussian(rows, 2, 21, 1), right = gaussian(2, cols, 22, 1);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t r = 0; r < 2; ++r)
          m.values[static_cast<size_t>(i * cols + j)] +=
              left.values[static_cast<size_t>(i * 2 + r)] * right.values[static_cast<size_t>(r * cols + j)];
    const LeadingVectors vectors = leading_vectors(runner, m.view(), 2);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double value = 0;
        for (int64_t r = 0; r < 2; ++r)
          value += vectors.left[static_cast<size_t>(i * 2 + r)] * vectors.right[static_cast<size_t>(r * cols + j)];
        ASSERT_NEAR(value, m.values[static_cast<size_t>(i * cols + j)], 0.01);
      }
    for (const int64_t group : {64, 32}) {
      const LowRankCorrection packed = pack_correction(vectors, rows, cols, group);
      EXPECT_EQ(packed.b_scale.size(), static_cast<size_t>((2 * cols + group - 1) / group));
      for (const int8_t a : packed.a) EXPECT_TRUE(a >= -2 && a <= 1);
      for (size_t i = 0; i < packed.b.size(); ++i) {
        EXPECT_TRUE(packed.b[i] >= -8 && packed.b[i] <= 7);
        const double scale = from_half(packed.b_scale[i / static_cast<size_t>(group)]);
        EXPECT_NEAR(scale * packed.b[i], vectors.right[i], 0.51 * scale);
      }
    }
  }
}

TEST(Lqer, LowersTheErrorItSaysItLowers) {
  SmallModel with({"quant.lqer.tensors=3"}), without;
  QuantReport corrected, plain;
  const QuantizedModel model = with.quantize(corrected);
  (void)without.quantize(plain);
  int count = 0;
  for (size_t i = 0; i < plain.tensors.size(); ++i) {
    EXPECT_EQ(corrected.tensors[i].corrected, model.tensors[i].correction.rank > 0);
    if (!corrected.tensors[i].corrected) continue;
    ++count;
    EXPECT_LT(corrected.tensors[i].mean_square, plain.tensors[i].mean_square);
  }
  EXPECT_LE(count, 3);
}

TEST(Lqer, SmallerGroupsHaveMoreScales) {
  SmallModel usual({"quant.lqer.tensors=3"}), small({"quant.lqer.tensors=3", "quant.lqer.group=32"});
  QuantReport report;
  const QuantizedModel wide = usual.quantize(report), narrow = small.quantize(report);
  int count = 0;
  for (size_t i = 0; i < wide.tensors.size(); ++i) {
    const LowRankCorrection &a = wide.tensors[i].correction, &b = narrow.tensors[i].correction;
    if (a.rank == 0 || b.rank == 0) continue;
    ++count;
    EXPECT_EQ(a.group, 64);
    EXPECT_EQ(b.group, 32);
    EXPECT_EQ(a.a, b.a);  // the first factor has one scale
    EXPECT_GT(b.b_scale.size(), a.b_scale.size());
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace fairway::quant_test
