// What a model recipe implies: which parameters it has, the order its layers run in (§4.4, §5.1), its cost (§14.1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/shape/parameter_row.h"
#include "recipe/recipe.h"

namespace fairway {

// A factor of a low-rank adapter and where the adapter sits (model/adapters.h).
enum class AdapterSite : uint8_t { q, k, v, o, mlp, head };
enum class AdapterFactor : uint8_t { a, b };
struct AdapterId {
  AdapterSite site;
  AdapterFactor factor;
  bool operator==(const AdapterId&) const = default;
};

struct ParamInfo {
  std::string name;            // interchange name
  std::vector<int64_t> shape;  // row-major; empty = one number
  ParamRole role = ParamRole::scalar;
  std::optional<ParamId> id = std::nullopt;         // absent: not the model's own
  std::optional<AdapterId> adapter = std::nullopt;  // absent: not of an adapter

  int64_t count() const;
  const ParamRow& row() const;  // asserts that it is the model's own
};

// Every parameter of the model, in storage order. The second form applies optim.matrix.projections to the roles.
std::vector<ParamInfo> parameter_table(const ModelRecipe& model);
std::vector<ParamInfo> parameter_table(const Recipe& recipe);
int64_t parameter_count(const ModelRecipe& model);

// Physical layers in execution order. The first `encoder` passes each push a skip; decoder pass p (counted from 0)
// pops the latest one while any is left and uses skip vector p.
struct LayerOrder {
  std::vector<int64_t> layers;
  int64_t encoder = 0;
};
LayerOrder layer_order(const ModelRecipe& model, bool looped);
int64_t skip_count(const ModelRecipe& model);  // skip vectors allocated: those of the looped order when there is a loop

// Forward and backward: 6·P_mm + 7·T·D·L_v.
double flops_per_token(const ModelRecipe& model, int64_t seq_len, bool looped);

}  // namespace fairway
