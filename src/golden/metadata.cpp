#include "golden/metadata.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>

#include "base/error.h"

namespace fairway::golden {
namespace {

// The pr726, pr1105 and pr1584 files: attention crosses documents, one trajectory with pr1105's optimizer.
const std::map<std::string, std::string> kBeforeDocuments{
    {"DOCS", "0"},
    {"BOS", "1"},
    {"SMEAR_BOS_MASK", "1"},
    {"SOFTCAP", "30"},
    {"MATRIX_LR", "0.025"},
    {"MUON_WD", "0.04"},
    {"NEWTON_SCHULZ", "ns5"},
    {"NS_STEPS", "5"},
    {"ROW_NORM", "0"},
    {"MUON_MOMENTUM_START", "0.92"},
    {"MUON_MOMENTUM", "0.99"},
    {"MUON_MOMENTUM_WARMUP_STEPS", "20"},
    {"TIED_EMBED_LR", "0.035"},
    {"EMBED_WD", "0.04"},
    {"SCALAR_LR", "0.025"},
    {"ADAM_WD", "0.04"},
    {"BETA1", "0.9"},
    {"BETA2", "0.95"},
    {"ADAM_EPS", "1e-8"},
    {"GRAD_CLIP_NORM", "0.3"},
    {"EMA_DECAY", "0.997"},
};

}  // namespace

Metadata::Metadata(const Safetensors& file) : name_(file.name()), values_(file.metadata()) {
  for (const auto& [key, value] : values_) stored_.insert(key);
  if (!has("DOCS")) values_.insert(kBeforeDocuments.begin(), kBeforeDocuments.end());
}

void Metadata::refuse(const std::string& key, const std::string& wanted) const {
  throw InputError(fmt::format("{}: metadata {} = {}, expected {}", name_, key, values_.at(key), wanted));
}

const std::string& Metadata::text(const std::string& key) {
  const auto found = values_.find(key);
  if (found == values_.end()) throw InputError(name_ + ": not a golden case: metadata has no " + key);
  stored_.erase(key);
  return found->second;
}

double Metadata::number(const std::string& key) {
  const std::string& spelled = text(key);
  double value = 0;
  const auto [end, error] = std::from_chars(spelled.data(), spelled.data() + spelled.size(), value);
  if (error != std::errc{} || end != spelled.data() + spelled.size() || !std::isfinite(value)) refuse(key, "a number");
  return value;
}

double Metadata::number(const std::string& key, double least, double most) {
  const double value = number(key);
  if (!(value >= least && value <= most)) refuse(key, fmt::format("a number from {} to {}", least, most));
  return value;
}

int64_t Metadata::whole(const std::string& key, int64_t least, int64_t most) {
  const double value = number(key);
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) || value != std::floor(value))
    refuse(key, fmt::format("a whole number from {} to {}", least, most));
  return static_cast<int64_t>(value);
}

std::vector<int64_t> Metadata::list(const std::string& key) {
  std::vector<int64_t> out;
  const std::string& spelled = text(key);
  for (const char *at = spelled.data(), *end = at + spelled.size(); at < end;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{} || (next < end && *next != ',')) refuse(key, "a list like 3,4");
    out.push_back(value);
    at = next < end ? next + 1 : next;
  }
  return out;
}

void Metadata::require(const std::string& key, double only) {
  if (number(key) != only) refuse(key, fmt::format("{}, the only value that this program supports", only));
}

void Metadata::refuse_unread() const {
  if (stored_.empty()) return;
  throw InputError(fmt::format("{}: metadata {} = {}: this program does not know this setting", name_, *stored_.begin(),
                               values_.at(*stored_.begin())));
}

}  // namespace fairway::golden
