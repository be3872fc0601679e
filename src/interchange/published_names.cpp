#include "interchange/published_names.h"

#include <algorithm>
#include <array>

namespace fairway::interchange {
namespace {

constexpr std::string_view kNumber = "{i}";

constexpr std::array<PublishedRow, 24> kPublishedRows{{
    {.id = ParamId::embed_token, .name = "tok_emb.weight", .table = true},
    {.id = ParamId::qo,
     .name = "qo_bank",
     .layer_name = "blocks.{i}.attn.c_q.weight",
     .later_layer_name = "blocks.{i}.attn.proj.weight"},
    {.id = ParamId::kv,
     .name = "kv_bank",
     .layer_name = "blocks.{i}.attn.c_k.weight",
     .later_layer_name = "blocks.{i}.attn.c_v.weight"},
    {.id = ParamId::up, .name = "mlp_up_bank", .layer_name = "blocks.{i}.mlp.fc.weight"},
    {.id = ParamId::down, .name = "mlp_down_bank", .layer_name = "blocks.{i}.mlp.proj.weight"},
    {.id = ParamId::attn_scale, .name = "blocks.{i}.attn_scale"},
    {.id = ParamId::mlp_scale, .name = "blocks.{i}.mlp_scale"},
    {.id = ParamId::resid_mix, .name = "blocks.{i}.resid_mix"},
    {.id = ParamId::q_gain, .name = "blocks.{i}.attn.q_gain"},
    {.id = ParamId::attn_gate, .name = "blocks.{i}.attn.attn_gate_w"},
    {.id = ParamId::skip_weight, .name = "skip_weights"},
    {.id = ParamId::skip_gate, .name = "skip_gates"},
    {.id = ParamId::smear_gate, .name = "smear.gate"},
    {.id = ParamId::smear_weight, .name = "smear_gate.weight", .row = true},
    {.id = ParamId::smear_lambda, .name = "smear_lambda"},
    {.id = ParamId::bigram_table, .name = "bigram.embed.weight", .table = true},
    {.id = ParamId::bigram_proj, .name = "bigram.proj.weight", .absent_if_square = true},
    {.id = ParamId::bigram_scale, .name = "bigram.scale"},
    {.id = ParamId::value_embed_table, .name = "ve_shared.embed.weight", .table = true},
    {.id = ParamId::value_embed_proj, .name = "ve_shared.proj.weight", .absent_if_square = true},
    {.id = ParamId::value_embed_scale, .name = "ve_shared.scale"},
    {.id = ParamId::value_embed_layer_scale, .name = "ve_layer_scales.{i}"},
    {.id = ParamId::lane_post, .name = "parallel_post_lambdas"},
    {.id = ParamId::lane_resid, .name = "parallel_resid_lambdas"},
}};

struct Lacking {
  std::string_view part, what;  // part: of a name, from a dot or the beginning on
};
constexpr std::array<Lacking, 10> kLacking{{
    {"lm_head.", "an output head of its own"},
    {"embed_proj", "a projection behind the token embedding"},
    {"head_proj", "a projection before the head"},
    {"attn_gate.", "an attention gate over the whole width"},
    {"attn_gate_proj.", "an attention gate from a projection"},
    {"vrl_alpha", "residual connections of attention values"},
    {"vr_lambda", "residual connections of attention values"},
    {"dtg_gate", "a dynamic token gate"},
    {"ngram_gate", "a gate on n-gram embeddings"},
    {"mtp_heads", "heads for more than one token ahead"},
}};

std::string numbered(std::string_view name, int64_t number) {
  std::string out(name);
  out.replace(out.find(kNumber), kNumber.size(), std::to_string(number));
  return out;
}

}  // namespace

const std::vector<PublishedConstant> kPublishedConstants{{"softcap_pos", 30, "record"}, {"softcap_neg", 30, "record"}};

const PublishedRow* published_row(ParamId id) {
  const auto* row =
      std::find_if(kPublishedRows.begin(), kPublishedRows.end(), [&](const PublishedRow& r) { return r.id == id; });
  return row == kPublishedRows.end() ? nullptr : row;
}

std::vector<TensorPlace> tensor_places(const ParamInfo& info, int64_t layers, NameStyle style) {
  const PublishedRow* row = style == NameStyle::fairway ? nullptr : published_row(*info.id);
  if (row == nullptr) return {{info.name, info.shape, 0, info.count()}};
  const bool by_layer = style == NameStyle::per_layer && !row->layer_name.empty();
  if (!by_layer && row->name.find(kNumber) == std::string_view::npos) {
    Extents shape = info.shape;
    if (row->row) shape.insert(shape.begin(), 1);
    return {{std::string(row->name), std::move(shape), 0, info.count()}};
  }
  std::vector<TensorPlace> places;
  const int64_t slices = info.shape[0], count = info.count() / std::max<int64_t>(1, slices);
  Extents shape(info.shape.begin() + 1, info.shape.end());
  if (shape.empty()) shape = {1};
  for (int64_t i = 0; i < slices; ++i) {
    const std::string_view name = !by_layer ? row->name : i < layers ? row->layer_name : row->later_layer_name;
    places.push_back({numbered(name, by_layer && i >= layers ? i - layers : i), shape, i * count, count});
  }
  return places;
}

bool is_position_table(std::string_view name) {
  return name.find(".rotary.") != std::string_view::npos || name.starts_with("rotary.");
}

std::string_view lacking_option(std::string_view name) {
  for (const Lacking& option : kLacking) {
    if (name.starts_with(option.part) || name.find("." + std::string(option.part)) != std::string_view::npos)
      return option.what;
  }
  return {};
}

}  // namespace fairway::interchange
