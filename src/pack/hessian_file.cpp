#include "pack/hessian_file.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/identity.h"
#include "model/safetensors.h"
#include "model/shape/model_shape.h"

namespace fairway {
namespace {

int64_t triangle(int64_t side) { return side * (side + 1) / 2; }

// Every point that a weight of the model reads, with its width.
std::map<std::string, int64_t> points_of(const ModelRecipe& model) {
  std::map<std::string, int64_t> out;
  for (const ParamInfo& info : parameter_table(model)) {
    const int64_t slices = info.row().block == BlockPart::matrices ? info.shape[0] : 1;
    for (int64_t slice = 0; slice < slices; ++slice) {
      const std::string point = hessian_point(model, info.row().id, slice);
      if (!point.empty()) out[point] = info.shape.back();
    }
  }
  return out;
}

template <class Number>
Number number_of(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  const std::string text = found == file.metadata().end() ? "" : found->second;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !(value >= 0) ||
      !std::isfinite(static_cast<double>(value)))
    throw InputError(fmt::format("{}: metadata {} = '{}' is not a count", file.name(), key, text));
  return value;
}

}  // namespace

void save_hessians(const std::filesystem::path& path, const HessianStore& hessians, const HessianState& state) {
  std::vector<std::vector<float>> triangles;
  std::vector<NamedTensor> tensors;
  for (const auto& [point, hessian] : hessians.all()) {
    std::vector<float>& values = triangles.emplace_back();
    values.reserve(static_cast<size_t>(triangle(hessian.side)));
    for (int64_t i = 0; i < hessian.side; ++i)
      for (int64_t j = 0; j <= i; ++j) values.push_back(static_cast<float>(hessian.at(i, j)));
    tensors.push_back({point, make_view(values.data(), {{triangle(hessian.side)}, DType::f32})});
  }
  save_safetensors(path, tensors,
                   {{"step", std::to_string(state.step)},
                    {"passes", std::to_string(state.passes)},
                    {"batches", fmt::format("{}", hessians.batches())},
                    {"recipe", state.recipe_hash}});
}

HessianState load_hessians(const std::filesystem::path& path, const Recipe& recipe, HessianStore& hessians) {
  const Safetensors file = Safetensors::read(path);
  const std::string hash = recipe_hash(recipe);
  const auto stored = file.metadata().find("recipe");
  Identities made, have;
  if (stored != file.metadata().end()) made.tell(IdentityKind::recipe, {stored->second});
  if (!made.tells(IdentityKind::recipe) || !differences(have.tell(IdentityKind::recipe, {hash}), made).empty())
    throw InputError(path.string() + ": belongs to a different recipe from this run's");
  HessianState state{number_of<int64_t>(file, "step"), number_of<int64_t>(file, "passes"), hash};
  for (const auto& [point, side] : points_of(recipe.model)) {
    const Tensor packed = file.get(point);
    if (packed.spec != Spec{{triangle(side)}, DType::f32})
      throw InputError(fmt::format("{}: {} is {}{}, the model's is f32[{}]", path.string(), point, name_of(packed.spec.dtype),
                                   packed.spec.shape.text(), triangle(side)));
    std::vector<double> values(static_cast<size_t>(side * side));
    const float* next = packed.as<float>();
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j <= i; ++j) values[static_cast<size_t>(i * side + j)] = static_cast<double>(*next++);
    hessians.put(point, side, std::move(values));
  }
  hessians.set_batches(number_of<double>(file, "batches"));
  return state;
}

}  // namespace fairway
