// One row per parameter that a model can have (spec §3, §7): all that differs between parameters stands here, so that nobody
// decides anything by a name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/model_recipe.h"

namespace fairway {

// Numbers are stored in artifacts: parameters are appended, never moved. Also the storage order.
enum class ParamId : uint8_t {
  embed_token,
  qo,
  kv,
  up,
  down,
  attn_scale,
  mlp_scale,
  resid_mix,
  q_gain,
  attn_gate,
  skip_weight,
  skip_gate,
  smear_gate,
  smear_weight,
  smear_lambda,
  bigram_table,
  bigram_proj,
  bigram_scale,
  value_embed_table,
  value_embed_proj,
  value_embed_scale,
  value_embed_layer_scale,
  lane_post,
  lane_resid,
};
inline constexpr size_t kParamCount = 24;

enum class ParamRole : uint8_t { matrix, token, scalar };  // which optimizer group updates it

// What a block owns of a parameter that is stacked over layers. Blocks are frozen by it; a bank of matrices is quantized and
// stored matrix by matrix. Lanes and skips join blocks and belong to none.
enum class BlockPart : uint8_t { none, vectors, matrices };

enum class Initial : uint8_t { zero, one, constant, normal, orthogonal, keep_stream };  // keep_stream: (1, 0) of (stream, x0)

enum class QuantRole : uint8_t { q, k, v, o, up, down, token, table, gate, rest };
constexpr bool is_attention(QuantRole role) { return role <= QuantRole::o; }
constexpr bool is_layer_matrix(QuantRole role) { return role <= QuantRole::down; }

// Weights of one role form one stream of an artifact, in this order.
enum class StreamRole : uint8_t { token, query, key, value, output, up, down, other };
inline constexpr int kStreamRoles = 8;

// Where the model shows the vectors that a weight multiplies; none: the weight is looked up or is a factor.
enum class InputPoint : uint8_t { none, attn_in, attn_out, mlp_in, mlp_hidden, head_in };
std::string point_name(InputPoint point, int64_t layer);  // "layer3.attn_in"; "final"; empty for none
bool is_hessian_point(std::string_view point);            // whether any weight is multiplied by the vectors seen here

struct WeightKind {
  Initial initial = Initial::zero;
  QuantRole quant = QuantRole::rest;
  StreamRole stream = StreamRole::other;
  InputPoint input = InputPoint::none;
};

struct ParamRow {
  ParamId id;
  std::string_view name;                                             // interchange name
  std::optional<std::vector<int64_t>> (*shape)(const ModelRecipe&);  // row-major; empty = one number; absent: not in this model
  ParamRole role = ParamRole::scalar;
  bool projection = false;  // updated as a matrix where optim.matrix.projections says so
  BlockPart block = BlockPart::none;
  WeightKind kind;
  std::optional<WeightKind> later_kind{};                  // of slices L … 2L-1, in a bank that stacks two kinds
  double (*initial_number)(const ModelRecipe&) = nullptr;  // the constant, or the normal's deviation

  const WeightKind& kind_of(int64_t slice, int64_t layers) const { return later_kind && slice >= layers ? *later_kind : kind; }
};

const ParamRow& row_of(ParamId id);
std::string name_of(ParamId id);
std::string tensor_name(ParamId id, int64_t slice);  // "bank.up[3]"; -1: the whole parameter

}  // namespace fairway
