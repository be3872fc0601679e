// Names of parameters in other people's files, declared once: import, export and docs/interchange.md follow this table. All
// matrices are [out, in] on both sides, so nothing is ever transposed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interchange/stored_tensor.h"
#include "model/shape/model_shape.h"

namespace fairway::interchange {

// fairway: the interchange names. published: the state dicts of the published scripts, with banks. per_layer: those of scripts
// without banks and of all published artifacts.
enum class NameStyle : uint8_t { fairway, published, per_layer };
inline constexpr NameStyle kNameStyles[] = {NameStyle::fairway, NameStyle::published, NameStyle::per_layer};

struct PublishedRow {
  ParamId id;
  std::string_view name;                              // "{i}" is the number of a slice: each slice is a tensor
  std::string_view layer_name{}, later_layer_name{};  // of a bank's matrices 0 … L-1 and L … 2L-1
  bool table = false;             // bf16 in a published checkpoint and in a published evaluation; others are f32
  bool row = false;               // a vector here, a matrix of one row there
  bool absent_if_square = false;  // published models do without where it would not change the width
};
// Null: no published system has it; it keeps its interchange name in every style.
const PublishedRow* published_row(ParamId id);

// Where a tensor's elements stand in its parameter.
struct TensorPlace {
  std::string name;
  Extents shape;
  int64_t begin = 0, count = 1;
};
std::vector<TensorPlace> tensor_places(const ParamInfo& info, int64_t layers, NameStyle style);

// Constants of published files that are no parameters. Where they have this value they are left out, otherwise refused.
struct PublishedConstant {
  std::string_view name;
  float value;
  std::string_view recipe;  // whose files have it
};
extern const std::vector<PublishedConstant> kPublishedConstants;
bool is_position_table(std::string_view name);  // "….rotary.…": made anew from the recipe

// What a published script can have and Fairway cannot, in words; empty where the name says nothing.
std::string_view lacking_option(std::string_view name);

}  // namespace fairway::interchange
