// Every built-in recipe with its features at sizes the reference backend can run.
#pragma once

#include <string>
#include <vector>

#include "base/rng.h"
#include "model/param_store.h"
#include "recipe/recipe.h"

namespace fairway::generate_test {

inline Recipe shrunk(std::string_view name) {
  Recipe recipe = load_recipe(name);
  ModelRecipe& m = recipe.model;
  m.vocab = 37, m.dim = 32, m.heads = 4, m.kv_heads = 2, m.mlp_hidden = 40;
  m.rope.dims = std::min<int64_t>(m.rope.dims, 8);
  if (m.bigram.rows > 0) m.bigram.rows = 31, m.bigram.dim = 6;
  if (m.value_embed.dim > 0) m.value_embed.dim = 6;
  validate(recipe, name);
  return recipe;
}

struct StageCase {
  std::string name;
  bool looped = false;
};
inline std::vector<StageCase> every_stage() {
  std::vector<StageCase> out;
  for (const BuiltinRecipe& recipe : builtin_recipes()) {
    out.push_back({std::string(recipe.name)});
    if (load_recipe(recipe.name).model.loop.count > 0) out.push_back({std::string(recipe.name), true});
  }
  return out;
}

// Weights of a size at which every feature shows in the logits.
inline void randomize(ParamStore& params, uint64_t seed = 5) {
  Rng rng(seed);
  float* values = params.flat_values().as<float>();
  for (int64_t i = 0; i < params.flat_values().numel(); ++i) values[i] = static_cast<float>(0.4 * rng.normal());
}

// Row by row; BOS now and then, which the smear gates look at.
inline std::vector<int32_t> tokens_of(const Recipe& recipe, int64_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<int32_t>(i % 7 == 4 ? recipe.model.bos : static_cast<int64_t>(rng.below(37))));
  return out;
}

}  // namespace fairway::generate_test
