#include "interchange/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/bf16.h"
#include "base/error.h"

namespace fairway::interchange {
namespace {

constexpr size_t kMostNamed = 6;  // of each list, in a sentence

bool is_transposed(const Extents& expected, const Extents& found) {
  Extents turned = found;
  if (turned.size() < 2) return false;
  std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
  return turned == expected;
}
// One number is the same number under [] and [1]; every other shape means something.
bool same_shape(const Extents& a, const Extents& b) {
  return a == b || (a.size() + b.size() == 1 && count_of(a) == 1 && count_of(b) == 1);
}

bool is_identity(const ParamInfo& info) {
  const PublishedRow* row = published_row(*info.id);
  return row != nullptr && row->absent_if_square && info.shape.size() == 2 && info.shape[0] == info.shape[1];
}

// The style of most tensors, for names of those that are not there.
NameStyle main_style(const WeightSet& set, const std::vector<ParamInfo>& table, int64_t layers) {
  std::map<NameStyle, size_t> hits;
  for (const ParamInfo& info : table)
    for (const NameStyle style : kNameStyles)
      for (const TensorPlace& place : tensor_places(info, layers, style))
        hits[style] += set.weights.contains(place.name) ? 1U : 0U;
  const auto most =
      std::max_element(hits.begin(), hits.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == hits.end() || most->second == 0 ? NameStyle::published : most->first;
}

// The same name is that of a gate over the whole width in some scripts.
std::string remark_on(const ParamInfo& info, const Extents& found, const ModelRecipe& model) {
  return info.id == ParamId::attn_gate && found == Extents{model.heads, model.dim}
             ? "an attention gate over the whole width, which Fairway does not have"
             : "";
}

void compare(const WeightSet& set, const ParamInfo& info, const TensorPlace& place, const ModelRecipe& model,
             std::set<std::string>& used, Fit& fit) {
  const auto found = set.weights.find(place.name);
  if (found == set.weights.end()) {
    fit.missing.push_back({place.name, place.shape, std::nullopt});
    return;
  }
  used.insert(place.name);
  const Extents& shape = found->second.shape;
  if (same_shape(place.shape, shape)) {
    ++fit.tensors;
  } else if (is_transposed(place.shape, shape)) {
    fit.transposed.push_back({place.name, place.shape, shape});
  } else {
    fit.missing.push_back({place.name, place.shape, shape, remark_on(info, shape, model)});
  }
}

// Constants of which all are in the file, each one number with the published value.
bool constants_hold(const WeightSet& set) {
  return std::all_of(kPublishedConstants.begin(), kPublishedConstants.end(), [&](const PublishedConstant& constant) {
    const auto found = set.weights.find(std::string(constant.name));
    return found != set.weights.end() && count_of(found->second.shape) == 1 && found->second.values().at(0) == constant.value;
  });
}

Misfit unexpected(const std::string& name, const Extents& shape) {
  for (const PublishedConstant& constant : kPublishedConstants)
    if (name == constant.name)
      return {name, std::nullopt, shape,
              fmt::format("a softcap of its own for each sign; expected both to be {}", constant.value)};
  const std::string_view option = lacking_option(name);
  return {name, std::nullopt, shape, option.empty() ? "" : fmt::format("{}, which Fairway does not have", option)};
}

std::string listed(const char* what, const std::vector<Misfit>& misfits) {
  std::vector<std::string> texts;
  for (const Misfit& misfit : misfits) {
    if (texts.size() == kMostNamed) break;
    texts.push_back(misfit.text());
  }
  if (misfits.size() > kMostNamed) texts.push_back(fmt::format("and {} more", misfits.size() - kMostNamed));
  return fmt::format("{} {} ({})", misfits.size(), what, fmt::join(texts, "; "));
}

// Values go through here once; what is not finite is told, not refused.
std::string not_finite(const std::string& name, const std::vector<float>& values) {
  const auto bad = [](float value) { return !std::isfinite(value); };
  const auto first = std::find_if(values.begin(), values.end(), bad);
  if (first == values.end()) return {};
  return fmt::format("{}: value {} is {}, {} of {} in all", name, first - values.begin(), *first,
                     std::count_if(first, values.end(), bad), values.size());
}

void fill_identity(float* out, int64_t width) {
  for (int64_t i = 0; i < width * width; ++i) out[i] = i / width == i % width ? 1.0F : 0.0F;
}

}  // namespace

std::string Misfit::text() const {
  std::string out = name;
  if (expected) out += fmt::format(": expected {}, {}", text_of(*expected), found ? "found " + text_of(*found) : "not there");
  if (!expected && found) out += " " + text_of(*found);
  return remark.empty() ? out : out + ": " + remark;
}

std::string Fit::sentence() const {
  std::vector<std::string> parts;
  if (!missing.empty()) parts.push_back(listed("missing", missing));
  if (!unexpected.empty()) parts.push_back(listed("unexpected", unexpected));
  if (!transposed.empty()) parts.push_back(listed("transposed", transposed));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::optional<NameStyle> style_of(const WeightSet& set, const ParamInfo& info, int64_t layers) {
  for (const NameStyle style : kNameStyles)
    for (const TensorPlace& place : tensor_places(info, layers, style))
      if (set.weights.contains(place.name)) return style;
  return std::nullopt;
}

Fit fit_of(const WeightSet& set, const ModelRecipe& model) {
  Fit fit;
  std::set<std::string> used;
  const std::vector<ParamInfo> table = parameter_table(model);
  const NameStyle main = main_style(set, table, model.layers);
  for (const ParamInfo& info : table) {
    const std::optional<NameStyle> style = style_of(set, info, model.layers);
    if (!style && is_identity(info)) {
      fit.filled.push_back(info.name);
      continue;
    }
    for (const TensorPlace& place : tensor_places(info, model.layers, style.value_or(main)))
      compare(set, info, place, model, used, fit);
  }
  const bool constants = constants_hold(set);
  for (const auto& [name, weight] : set.weights) {
    if (used.contains(name)) continue;
    const bool constant = std::any_of(kPublishedConstants.begin(), kPublishedConstants.end(),
                                      [&, &own = name](const auto& c) { return c.name == own; });
    if (is_position_table(name) || (constant && constants)) {
      fit.ignored.push_back(name);
    } else {
      fit.unexpected.push_back(unexpected(name, weight.shape));
    }
  }
  return fit;
}

Loaded load(const WeightSet& set, const Recipe& recipe, bool round_tables) {
  Loaded out{.params = std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none),
             .not_finite = {},
             .rounded = {}};
  for (const ParamBank& bank : out.params->banks()) {
    auto* to = bank.value.as<float>();
    const std::optional<NameStyle> style = style_of(set, bank.info, recipe.model.layers);
    if (!style) {
      FAIRWAY_ASSERT(is_identity(bank.info), "weights that do not fit are loaded");
      fill_identity(to, bank.info.shape[0]);
      continue;
    }
    for (const TensorPlace& place : tensor_places(bank.info, recipe.model.layers, *style)) {
      const std::vector<float> values = set.weights.at(place.name).values();
      FAIRWAY_ASSERT(static_cast<int64_t>(values.size()) == place.count, "a weight has another size than its shape says");
      std::copy(values.begin(), values.end(), to + place.begin);
      if (std::string told = not_finite(place.name, values); !told.empty()) out.not_finite.push_back(std::move(told));
    }
    const PublishedRow* row = published_row(*bank.info.id);
    if (!round_tables || row == nullptr || !row->table) continue;
    std::transform(to, to + bank.info.count(), to, through_bf16);
    out.rounded.push_back(bank.info.name);
  }
  return out;
}

}  // namespace fairway::interchange
