// Low-rank additions to a model that stays as it is (scoring spec §2.6): for each pass over a layer Q, K and V as W + s·B·A,
// "O" and "MLP" as s·B·A·n beside the sublayer whose normed input n is, and the head's table as E + s·B·A.
#pragma once

#include <vector>

#include "model/param_store.h"
#include "recipe/adapt_recipe.h"

namespace fairway {

bool has(const LoraSites& sites, AdapterSite site);

// The parameters of the sites that have adapters: factors a and b; b is (out, r). a is (in, r) for q, k, v and head, whose
// product with b is a matrix, and (r, in) for o and mlp, which multiply activations. Names ("lora.q.a") label them and seed
// their draw.
std::vector<ParamInfo> adapter_table(const ModelRecipe& model, const LoraSites& sites, bool looped, int64_t rank);

// Programs number the adapters' banks from here on, behind those of the model.
inline constexpr int32_t kAdapterBanks = 256;

struct AdapterInputs {
  const ParamStore* params = nullptr;
  Tensor width_scale;  // (D), all s = alpha/r
  Tensor rank_scale;   // (r), all s
  LoraSites sites;     // of `params`
};

}  // namespace fairway
