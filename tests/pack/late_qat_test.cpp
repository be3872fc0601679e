// Late QAT sees the weights that the recipe's quantizer would store: a model in the fake-quantized stage gives the bits of the
// same model on dequantized weights, under either scale rule, with widths and clips of their own for attention and MLP.
#include <gtest/gtest.h>

#include "backends/backends.h"
#include "model/named_bank.h"
#include "pack/naive_hessians.h"
#include "quant/quantize_model.h"
#include "score/eval_model.h"

namespace fairway::calibrate_test {
namespace {

std::vector<float> nll_of(const Recipe& recipe, const std::shared_ptr<ParamStore>& params, ModelStage stage) {
  Queue queue(2);
  const std::unique_ptr<Executor> executor = make_executor(Backend::cpu, queue);
  EvalModel model(recipe, 2, 24, stage, *executor, params);
  for (size_t i = 0; i < model.tokens().size(); ++i) {
    model.tokens()[i] = static_cast<int32_t>(i * 37 % static_cast<size_t>(recipe.model.vocab));
    model.targets()[i] = static_cast<int32_t>(i * 53 % static_cast<size_t>(recipe.model.vocab));
  }
  model.run();
  return {model.nll().begin(), model.nll().end()};
}

void expect_quantizers_grid(const std::vector<std::string>& settings, float widen) {
  std::vector<std::string> overrides{"quant.rule=rtn", "train.qat={enabled=true, bits=0}"};
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  const Recipe recipe = load_recipe("smoke", overrides);
  const auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  generate_test::randomize(*params);
  for (const ParamBank& bank : params->banks()) {
    if (!bank.info.name.starts_with("bank.")) continue;
    float* weights = bank.value.as<float>();
    for (int64_t i = 0; i < bank.value.numel(); ++i) weights[i] *= widen;
    std::fill_n(weights, bank.value.cols(), 0.125F);  // a constant row has no deviation
    std::fill_n(weights + bank.value.cols(), bank.value.cols(), 0.0F);
    weights[2 * bank.value.cols()] = 40 * widen;  // far beyond its row's deviations
  }
  Queue queue(2);
  QuantReport report;
  const QuantizedModel quantized = quantize_model(*params, recipe, nullptr, queue, report);
  const auto rounded = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  dequantize(quantized, *rounded);
  for (const ParamBank& bank : params->banks()) {  // late QAT is about the banks
    if (!bank.info.name.starts_with("bank."))
      std::copy_n(bank.value.as<float>(), bank.value.numel(), bank_named(*rounded, bank.info.name).value.as<float>());
  }
  const std::vector<float> through = nll_of(recipe, params, {.fake_quant = true});
  EXPECT_EQ(through, nll_of(recipe, rounded, {}));
  EXPECT_NE(through, nll_of(recipe, params, {}));
}

TEST(LateQat, SeesTheGridOfSdClip) {
  expect_quantizers_grid({"quant.scale=sdclip", "quant.attn_bits=5", "quant.clip={attn=9, mlp=14.5}"}, 1);
}

TEST(LateQat, SeesTheGridOfThePercentileRule) {
  expect_quantizers_grid({"quant.scale=percentile", "quant.matrix_bits=5"}, 1);
  expect_quantizers_grid({"quant.scale=percentile", "quant.attn_bits=4"}, 30);  // beyond the floor of the clip
}

}  // namespace
}  // namespace fairway::calibrate_test
