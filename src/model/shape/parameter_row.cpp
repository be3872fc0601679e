#include "model/shape/parameter_row.h"

#include <array>

#include "model/shape/model_shape.h"

namespace fairway {
namespace {

using Extents = std::optional<std::vector<int64_t>>;
using M = ModelRecipe;

template <class... Extent>
Extents always(Extent... extents) {
  return std::vector<int64_t>{static_cast<int64_t>(extents)...};
}
template <class... Extent>
Extents given(bool present, Extent... extents) {
  return present ? always(extents...) : std::nullopt;
}

bool has_skips(const M& m) { return m.skip != SkipKind::none && skip_count(m) > 0; }
bool has_bigram(const M& m) { return m.bigram.rows > 0; }
bool has_value_embed(const M& m) { return m.value_embed.dim > 0; }
bool has_lanes(const M& m) { return m.lanes.start >= 0; }

// Output projections start at zero, so that every block starts as the identity.
constexpr WeightKind kQuery{Initial::orthogonal, QuantRole::q, StreamRole::query, InputPoint::attn_in};
constexpr WeightKind kKey{Initial::orthogonal, QuantRole::k, StreamRole::key, InputPoint::attn_in};
constexpr WeightKind kValue{Initial::orthogonal, QuantRole::v, StreamRole::value, InputPoint::attn_in};
constexpr WeightKind kOutput{Initial::zero, QuantRole::o, StreamRole::output, InputPoint::attn_out};
constexpr WeightKind kUp{Initial::orthogonal, QuantRole::up, StreamRole::up, InputPoint::mlp_in};
constexpr WeightKind kDown{Initial::zero, QuantRole::down, StreamRole::down, InputPoint::mlp_hidden};
constexpr WeightKind kEmbedding{Initial::normal, QuantRole::token, StreamRole::token, InputPoint::head_in};  // tied to the head
constexpr WeightKind kProjection{Initial::orthogonal, QuantRole::table};

constexpr std::array<ParamRow, kParamCount> kRows{{
    {.id = ParamId::embed_token,
     .name = "embed.token",
     .shape = [](const M& m) { return always(m.vocab, m.dim); },
     .role = ParamRole::token,
     .kind = kEmbedding,
     .initial_number = [](const M& m) { return m.embed_init_std; }},
    {.id = ParamId::qo,
     .name = "bank.qo",
     .shape = [](const M& m) { return always(2 * m.layers, m.dim, m.dim); },
     .role = ParamRole::matrix,
     .block = BlockPart::matrices,
     .kind = kQuery,
     .later_kind = kOutput},
    {.id = ParamId::kv,
     .name = "bank.kv",
     .shape = [](const M& m) { return always(2 * m.layers, m.kv_dim(), m.dim); },
     .role = ParamRole::matrix,
     .block = BlockPart::matrices,
     .kind = kKey,
     .later_kind = kValue},
    {.id = ParamId::up,
     .name = "bank.up",
     .shape = [](const M& m) { return always(m.layers, m.mlp_hidden, m.dim); },
     .role = ParamRole::matrix,
     .block = BlockPart::matrices,
     .kind = kUp},
    {.id = ParamId::down,
     .name = "bank.down",
     .shape = [](const M& m) { return always(m.layers, m.dim, m.mlp_hidden); },
     .role = ParamRole::matrix,
     .block = BlockPart::matrices,
     .kind = kDown},
    {.id = ParamId::attn_scale,
     .name = "block.attn_scale",
     .shape = [](const M& m) { return always(m.layers, m.dim); },
     .block = BlockPart::vectors,
     .kind = {Initial::one}},
    {.id = ParamId::mlp_scale,
     .name = "block.mlp_scale",
     .shape = [](const M& m) { return always(m.layers, m.dim); },
     .block = BlockPart::vectors,
     .kind = {Initial::one}},
    {.id = ParamId::resid_mix,
     .name = "block.resid_mix",
     .shape = [](const M& m) { return always(m.layers, 2, m.dim); },
     .block = BlockPart::vectors,
     .kind = {Initial::keep_stream}},
    {.id = ParamId::q_gain,
     .name = "block.q_gain",
     .shape = [](const M& m) { return always(m.layers, m.heads); },
     .block = BlockPart::vectors,
     .kind = {Initial::constant},
     .initial_number = [](const M& m) { return m.q_gain_init; }},
    {.id = ParamId::attn_gate,
     .name = "block.attn_gate",
     .shape = [](const M& m) { return given(m.attn_gate == AttnGateKind::sparse, m.layers, m.heads, kGateInputs); },
     .block = BlockPart::vectors,
     .kind = {Initial::zero, QuantRole::gate}},
    {.id = ParamId::skip_weight,
     .name = "skip.weight",
     .shape = [](const M& m) { return given(has_skips(m), skip_count(m), m.dim); },
     .kind = {Initial::one}},
    {.id = ParamId::skip_gate,
     .name = "skip.gate",
     .shape = [](const M& m) { return given(has_skips(m) && m.skip == SkipKind::gated, skip_count(m), m.dim); }},
    {.id = ParamId::smear_gate,
     .name = "smear.gate",
     .shape = [](const M& m) { return given(m.smear == SmearKind::constant, m.dim); }},
    {.id = ParamId::smear_weight,
     .name = "smear.weight",
     .shape = [](const M& m) { return given(m.smear == SmearKind::input, kGateInputs); }},
    {.id = ParamId::smear_lambda,
     .name = "smear.lambda",
     .shape = [](const M& m) { return given(m.smear == SmearKind::input, 1); }},
    {.id = ParamId::bigram_table,
     .name = "bigram.table",
     .shape = [](const M& m) { return given(has_bigram(m), m.bigram.rows, m.bigram.dim); },
     .role = ParamRole::token,
     .kind = {Initial::zero, QuantRole::table, StreamRole::token}},
    {.id = ParamId::bigram_proj,
     .name = "bigram.proj",
     .shape = [](const M& m) { return given(has_bigram(m), m.dim, m.bigram.dim); },
     .projection = true,
     .kind = kProjection},
    {.id = ParamId::bigram_scale,
     .name = "bigram.scale",
     .shape = [](const M& m) { return given(has_bigram(m)); },
     .kind = {Initial::constant},
     .initial_number = [](const M& m) { return m.bigram.scale_init; }},
    {.id = ParamId::value_embed_table,
     .name = "value_embed.table",
     .shape = [](const M& m) { return given(has_value_embed(m), m.vocab, m.value_embed.dim); },
     .role = ParamRole::token,
     .kind = {Initial::normal, QuantRole::table, StreamRole::token},
     .initial_number = [](const M& m) { return m.value_embed.init_std; }},
    {.id = ParamId::value_embed_proj,
     .name = "value_embed.proj",
     .shape = [](const M& m) { return given(has_value_embed(m), m.kv_dim(), m.value_embed.dim); },
     .projection = true,
     .kind = kProjection},
    {.id = ParamId::value_embed_scale,
     .name = "value_embed.scale",
     .shape = [](const M& m) { return given(has_value_embed(m)); },
     .kind = {Initial::constant},
     .initial_number = [](const M& m) { return m.value_embed.scale_init; }},
    {.id = ParamId::value_embed_layer_scale,
     .name = "value_embed.layer_scale",
     .shape = [](const M& m) { return given(has_value_embed(m), m.value_embed.layers.size()); },
     .kind = {Initial::one}},
    {.id = ParamId::lane_post,
     .name = "lane.post",
     .shape = [](const M& m) { return given(has_lanes(m), m.layers, 2, 2); },
     .kind = {Initial::constant},
     .initial_number = [](const M& m) { return m.lanes.post_init; }},
    {.id = ParamId::lane_resid,
     .name = "lane.resid",
     .shape = [](const M& m) { return given(has_lanes(m), m.layers, 2); },
     .kind = {Initial::constant},
     .initial_number = [](const M& m) { return m.lanes.resid_init; }},
}};

constexpr bool rows_stand_at_their_numbers() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    const bool draws = kRows[i].kind.initial == Initial::constant || kRows[i].kind.initial == Initial::normal;
    if (kRows[i].id != static_cast<ParamId>(i) || draws != (kRows[i].initial_number != nullptr)) return false;
  }
  return true;
}
static_assert(rows_stand_at_their_numbers());

constexpr std::array<std::string_view, 4> kLayerPoints{".attn_in", ".attn_out", ".mlp_in", ".mlp_hidden"};  // from attn_in on
constexpr std::string_view kHeadPoint = "final";

}  // namespace

const ParamRow& row_of(ParamId id) { return kRows[static_cast<size_t>(id)]; }
std::string name_of(ParamId id) { return std::string(row_of(id).name); }

std::string tensor_name(ParamId id, int64_t slice) {
  return slice < 0 ? name_of(id) : name_of(id) + "[" + std::to_string(slice) + "]";
}

std::string point_name(InputPoint point, int64_t layer) {
  if (point == InputPoint::none) return "";
  if (point == InputPoint::head_in) return std::string(kHeadPoint);
  const auto at = static_cast<size_t>(point) - static_cast<size_t>(InputPoint::attn_in);
  return "layer" + std::to_string(layer) + std::string(kLayerPoints[at]);
}

bool is_hessian_point(std::string_view point) {
  if (point == kHeadPoint) return true;
  for (const std::string_view end : kLayerPoints)
    if (point.starts_with("layer") && point.ends_with(end)) return true;
  return false;
}

}  // namespace fairway
