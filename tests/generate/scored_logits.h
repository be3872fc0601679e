// Logits by the scorer's whole forward pass, which every way of decoding is held to.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "backends/backends.h"
#include "generate/tiny_recipes.h"
#include "quant/quantize_model.h"
#include "score/eval_model.h"

namespace fairway::generate_test {

using LogitRows = std::vector<std::vector<float>>;

// Random weights, rounded.
inline QuantizedModel quantized(Recipe recipe) {
  recipe.quant.rule = QuantRule::rtn;
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  randomize(params);
  Queue queue(1);
  QuantReport report;
  return quantize_model(params, recipe, nullptr, queue, report);
}

// Of every position, over the dequantized weights.
inline LogitRows scored(const QuantizedModel& model, const Recipe& recipe, ModelStage stage,
                        const std::vector<int32_t>& tokens) {
  Queue queue(1);
  const auto executor = make_executor(Backend::cpu, queue);
  EvalModel whole(recipe, 1, static_cast<int64_t>(tokens.size()), stage, *executor);
  dequantize(model, whole.params());
  std::copy(tokens.begin(), tokens.end(), whole.tokens().begin());
  std::fill(whole.targets().begin(), whole.targets().end(), 0);
  whole.run();
  LogitRows out;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto logits = whole.logits(static_cast<int64_t>(t));
    out.emplace_back(logits.begin(), logits.end());
  }
  return out;
}

// Largest difference, over the largest logit; anything that is not a number is infinitely far.
inline double distance(std::span<const float> a, std::span<const float> b) {
  double worst = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= worst)) worst = difference;
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return std::isfinite(worst) && a.size() == b.size() && largest > 0 ? worst / largest : INFINITY;
}

}  // namespace fairway::generate_test
