#include "golden/case_file.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"

namespace fairway::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t whole(const Safetensors& file, const std::string& key, int64_t least, int64_t most) {
  const double value = number(file, key);
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) || value != std::floor(value)) {
    throw InputError(file.name() + ": metadata " + key + " = " + file.metadata().at(key) + " is not a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most));
  }
  return static_cast<int64_t>(value);
}

std::vector<int64_t> list(const Safetensors& file, const std::string& key) {
  std::vector<int64_t> out;
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw InputError(file.name() + ": not a golden case: metadata has no " + key);
  const std::string& text = found->second;
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || (next < end && *next != ','))
      throw InputError(fmt::format("{}: metadata {} = {} is not a list like 3,4", file.name(), key, text));
    out.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return out;
}

}  // namespace

double number(const Safetensors& file, const std::string& key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) throw InputError(file.name() + ": not a golden case: metadata has no " + key);
  double value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw InputError(file.name() + ": metadata " + key + " = " + text + " is not a number");
  return value;
}

double number_or(const Safetensors& file, const std::string& key, double fallback) {
  return file.metadata().contains(key) ? number(file, key) : fallback;
}

Recipe recipe_of(const Safetensors& file, const std::string& prefix) {
  Recipe recipe;
  ModelRecipe& m = recipe.model;
  m.vocab = whole(file, "VOCAB_SIZE", 2, 65536);
  m.dim = whole(file, "MODEL_DIM", 1, 16384);
  m.layers = whole(file, "NUM_LAYERS", 1, 256);
  m.heads = whole(file, "NUM_HEADS", 1, 1024);
  m.kv_heads = whole(file, "NUM_KV_HEADS", 1, 1024);
  const double hidden = number(file, "MLP_MULT") * static_cast<double>(m.dim);
  if (!(hidden >= 1 && hidden <= 65536))
    throw InputError(file.name() + ": metadata MLP_MULT = " + file.metadata().at("MLP_MULT") +
                     " does not give 1 to 65536 units");
  m.mlp_hidden = static_cast<int64_t>(std::llround(hidden));
  m.rope.dims = whole(file, "ROPE_DIMS", 0, 1024);
  m.xsa_first_layer = m.layers - whole(file, "XSA_LAST_N", 0, m.layers);
  if (m.xsa_first_layer == m.layers) m.xsa_first_layer = -1;
  if (file.metadata().contains("NUM_LOOPS")) {
    m.loop.start = whole(file, "LOOP_START", 0, m.layers - 1);
    m.loop.end = whole(file, "LOOP_END", m.loop.start, m.layers - 1);
    m.loop.count = whole(file, "NUM_LOOPS", 0, 64);
    m.rope.reference_length = 2048;  // the looped family; the others have 1024
  }
  if (file.metadata().contains("PARALLEL_START_LAYER")) m.lanes.start = whole(file, "PARALLEL_START_LAYER", 0, m.layers);
  if (m.lanes.start >= m.layers) m.lanes.start = -1;
  if (file.metadata().contains("BIGRAM_VOCAB_SIZE")) {
    m.bigram.rows = whole(file, "BIGRAM_VOCAB_SIZE", 0, 1 << 24);
    m.bigram.dim = whole(file, "BIGRAM_DIM", 1, 16384);
  }
  if (file.metadata().contains("VE_DIM")) {
    m.value_embed.dim = whole(file, "VE_DIM", 0, 16384);
    m.value_embed.layers = list(file, "VE_LAYERS");
  }
  m.smear = file.has(prefix + "smear.gate")     ? SmearKind::constant
            : file.has(prefix + "smear.weight") ? SmearKind::input
                                                : SmearKind::none;
  m.skip = file.has(prefix + "skip.gate")     ? SkipKind::gated
           : file.has(prefix + "skip.weight") ? SkipKind::additive
                                              : SkipKind::none;
  m.attn_gate = file.has(prefix + "block.attn_gate") ? AttnGateKind::sparse : AttnGateKind::none;
  return recipe;
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

bool looped(const Safetensors& file, const Recipe& recipe) {
  if (recipe.model.loop.count == 0 || !file.has("hidden")) return false;
  const auto sequential = [&](bool with_loop) {
    int64_t blocks = 0;
    for (int64_t layer : layer_order(recipe.model, with_loop).layers) {
      blocks += recipe.model.lanes.start < 0 || layer < recipe.model.lanes.start ? 1 : 0;
    }
    return blocks;
  };
  const int64_t stored = file.get("hidden").dim(0);
  if (stored != sequential(false) && stored != sequential(true)) {
    throw InputError(file.name() + ": hidden holds " + std::to_string(stored) + " states, the model makes " +
                     std::to_string(sequential(false)) + " or, looped, " + std::to_string(sequential(true)));
  }
  return stored == sequential(true);
}

}  // namespace fairway::golden
