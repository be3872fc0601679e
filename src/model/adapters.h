// Low-rank additions to a model that stays as it is (scoring spec §2.6), other ones for each of G documents: for each pass over
// a layer to Q, K and V, and from the normed input of attention and MLP ("O", "MLP") to their output before its scale; from the
// head's input to ℓ. Each is alpha/r·B·A·x.
#pragma once

#include <vector>

#include "model/param_store.h"
#include "recipe/adapt_recipe.h"

namespace fairway {

bool has(const LoraSites& sites, AdapterSite site);

struct AdapterShape {
  LoraSites sites;
  int64_t rank = 1;
  int64_t documents = 1;  // G
};

// The parameters of the sites that have adapters, as LowRankAdd takes them: factors a (G, r, in) and b (G, out, r), in front of
// them a place for each pass but at the head. Names ("lora.q.a") label them and seed their draw.
std::vector<ParamInfo> adapter_table(const ModelRecipe& model, const AdapterShape& shape, bool looped);

// Programs number the adapters' banks from here on, behind those of the model.
inline constexpr int32_t kAdapterBanks = 256;

struct AdapterInputs {
  const ParamStore* params = nullptr;
  LoraSites sites;        // of `params`
  int64_t documents = 1;  // rows are those of the first so many of the store's, as many for each
  double scale = 1;       // alpha/r
};

}  // namespace fairway
