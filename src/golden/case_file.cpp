#include "golden/case_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "model/shape/model_shape.h"

namespace fairway::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t sequential_blocks(const ModelRecipe& model, bool with_loop) {
  const std::vector<int64_t> order = layer_order(model, with_loop).layers;
  return std::count_if(order.begin(), order.end(),
                       [&](int64_t layer) { return model.lanes.start < 0 || layer < model.lanes.start; });
}

}  // namespace

bool looped(const Safetensors& file, Metadata& meta, const Recipe& recipe) {
  const bool told = meta.has("LOOPED"), can = recipe.model.loop.count > 0;
  if (told && meta.flag("LOOPED") && !can) throw InputError(file.name() + ": metadata LOOPED = 1, but NUM_LOOPS loops nothing");
  if (!file.has("hidden")) return told && meta.flag("LOOPED");
  const int64_t stored = file.get("hidden").dim(0), plain = sequential_blocks(recipe.model, false),
                deep = can ? sequential_blocks(recipe.model, true) : plain;
  const bool with_loop = told ? meta.flag("LOOPED") : can && stored == deep;
  if (stored != (with_loop ? deep : plain)) {
    throw InputError(file.name() + ": hidden holds " + std::to_string(stored) + " states, the model makes " +
                     std::to_string(plain) + " or, looped, " + std::to_string(deep) +
                     (told ? "; LOOPED = " + meta.text("LOOPED") : ""));
  }
  return with_loop;
}

void load_params(const Safetensors& file, const std::string& prefix, const ParamStore& params) {
  for (const ParamBank& bank : params.banks()) {
    const Tensor stored = file.get(prefix + bank.info.name);
    if (stored.spec != bank.value.spec) {
      throw InputError(file.name() + ": " + prefix + bank.info.name + " is " + name_of(stored.spec.dtype) +
                       stored.spec.shape.text() + ", the model has f32" + bank.value.spec.shape.text());
    }
    std::memcpy(bank.value.data, stored.data, stored.spec.bytes());
  }
}

double relative_error(double have, double want) {
  if (!std::isfinite(have) || !std::isfinite(want)) return kInfinity;
  return have == want ? 0 : std::abs(have - want) / std::abs(want);
}

double relative_error(const float* have, const Tensor& want) {
  double difference = 0, norm = 0;
  const float* expected = want.as<float>();
  for (int64_t i = 0; i < want.numel(); ++i) {
    const auto a = static_cast<double>(have[i]), b = static_cast<double>(expected[i]);
    if (!std::isfinite(a) || !std::isfinite(b)) return kInfinity;
    difference += (a - b) * (a - b);
    norm += b * b;
  }
  return difference == 0 ? 0 : norm == 0 ? kInfinity : std::sqrt(difference / norm);
}

const TensorError& worst_of(const std::vector<TensorError>& errors) {
  FAIRWAY_ASSERT(!errors.empty(), "a model without parameters");
  return *std::max_element(errors.begin(), errors.end(),
                           [](const TensorError& a, const TensorError& b) { return a.error / a.limit < b.error / b.limit; });
}

}  // namespace fairway::golden
