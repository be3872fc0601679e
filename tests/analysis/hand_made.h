// A model of two layers whose weights are set by hand, so that each of its four heads does one known thing:
//   layer 0  head 0 looks at the previous token, by rotation alone; its value moves that token's name beside the own one
//            head 1 has no queries: it looks at everything alike
//   layer 1  head 0 looks where the previous token was the present one: induction, at the repeated token itself
//            head 1 looks at the present token's own name: at itself and at its earlier occurrence
// Tokens are named by channels 0 … V−1, previous ones by V … 2V−1; channel 2V is always on.
#pragma once

#include <cmath>
#include <memory>

#include "analysis/token_rows.h"
#include "backends/backends.h"
#include "model/named_bank.h"

namespace fairway::analysis_test {

inline constexpr int64_t kNames = 48, kWidth = 128, kHead = 64, kRotated = 16;

inline Recipe hand_made_recipe() {
  Recipe recipe;
  ModelRecipe& m = recipe.model;
  m.vocab = kNames;
  m.dim = kWidth;
  m.layers = 2;
  m.heads = m.kv_heads = 2;
  m.mlp_hidden = 8;
  m.layer_scale = false;
  m.rope = {.dims = kRotated, .base = 100, .reference_length = 1024};
  recipe.data.seq_len = 2 * kNames;
  return recipe;
}

inline std::shared_ptr<ParamStore> hand_made_weights(const Recipe& recipe) {
  auto params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none);
  const auto at = [&](const char* bank, int64_t slice, int64_t row, int64_t col) -> float& {
    const Tensor matrix = bank_named(*params, bank).value.slice(slice);
    return matrix.as<float>()[row * matrix.cols() + col];
  };
  const auto ones = [&](const char* bank) {
    const Tensor value = bank_named(*params, bank).value;
    std::fill_n(value.as<float>(), value.numel(), 1.0F);
  };
  ones("block.attn_scale");
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t d = 0; d < kWidth; ++d) at("block.resid_mix", layer, 0, d) = 1;
    for (int64_t head = 0; head < 2; ++head) bank_named(*params, "block.q_gain").value.as<float>()[layer * 2 + head] = 40;
  }
  const Tensor table = bank_named(*params, "embed.token").value;
  for (int64_t token = 0; token < kNames; ++token)
    table.as<float>()[token * kWidth + token] = table.as<float>()[token * kWidth + 2 * kNames] = 1;

  const int64_t half = kRotated / 2, k_bank = 0, v_bank = 2;  // of bank.kv: K of both layers, then V
  for (int64_t j = 0; j < half; ++j) {                        // q·k = Σ cos((t − s − 1)·θ_j)
    const double angle = std::pow(100.0, -2.0 * static_cast<double>(j) / kRotated);
    at("bank.qo", 0, j, 2 * kNames) = static_cast<float>(std::cos(angle));
    at("bank.qo", 0, half + j, 2 * kNames) = static_cast<float>(std::sin(angle));
    at("bank.kv", k_bank, j, 2 * kNames) = 1;
  }
  for (int64_t n = 0; n < kNames; ++n) {
    at("bank.kv", v_bank, n, n) = 1;        // layer 0, head 0: the name that is looked at …
    at("bank.qo", 2, kNames + n, n) = 4;    // … is written beside the own one (bank.qo: Q of both layers, then O)
    at("bank.qo", 1, kRotated + n, n) = 1;  // layer 1: both heads ask for the own name, in channels that do not rotate
    at("bank.qo", 1, kHead + kRotated + n, n) = 1;
    at("bank.kv", k_bank + 1, kRotated + n, kNames + n) = 1;  // head 0 answers with the previous name
    at("bank.kv", k_bank + 1, kHead + kRotated + n, n) = 1;   // head 1 with the own one
  }
  return params;
}

// Every name once in a fixed mixed order, then all again; `rows` times, each row in another order.
inline std::vector<uint16_t> repeated_names(int64_t rows) {
  std::vector<uint16_t> stream;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t t = 0; t < 2 * kNames; ++t) stream.push_back(static_cast<uint16_t>((t * 5 + 7 * row) % kNames));
  stream.push_back(0);
  return stream;
}

struct HandMade {
  explicit HandMade(int threads = 2) : queue(threads), executor(make_cpu_executor(queue)) {}
  AnalysisInput input() {
    return {.recipe = recipe,
            .stage = {},
            .weights = weights,
            .stream = stream,
            .row_length = 2 * kNames,
            .executor = *executor,
            .pool = queue.pool()};
  }
  Recipe recipe = hand_made_recipe();
  std::shared_ptr<ParamStore> weights = hand_made_weights(recipe);
  std::vector<uint16_t> stream = repeated_names(3);
  Queue queue;
  std::unique_ptr<Executor> executor;
};

}  // namespace fairway::analysis_test
