#include "bench/quantize_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "pack/fit.h"
#include "stages/calibration.h"

namespace fairway::bench {
namespace {

struct Setting {
  std::string name;
  std::optional<Calibration> calibration;  // none: no Hessians
  std::vector<std::string> settings;
  std::string size_of{};  // allocator: under the bytes that this row took
};

// The best of the three sources that a run always has stands for the settings that are not about calibration.
std::vector<Setting> settings_of(int64_t matrices) {
  const std::string sdclip = "quant.scale=\"sdclip\"", percentile = "quant.scale=\"percentile\"", gptq = "quant.rule=\"gptq\"",
                    rtn = "quant.rule=\"rtn\"", lite = "quant.rule=\"gptq_lite\"";
  const auto k = [](double value) { return fmt::format("quant.clip={{attn={0}, mlp={0}}}", value); };
  const auto train = Calibration::train;
  return {{"SDClip int6, rounded", {}, {rtn, sdclip}},
          {"SDClip int6, GPTQ, self", Calibration::self, {gptq, sdclip}},
          {"SDClip int6, GPTQ, train", train, {gptq, sdclip}},
          {"SDClip int6, GPTQ, online", Calibration::online, {gptq, sdclip}},
          {"Hessian-aware SDClip int6, GPTQ, train", train, {gptq, "quant.scale=\"hessian_sdclip\""}},
          {"SDClip int6 k 14.3, GPTQ, train", train, {gptq, sdclip, k(14.3)}},
          {"SDClip int6 k 16, GPTQ, train", train, {gptq, sdclip, k(16)}},
          {"SDClip int5, GPTQ, train", train, {gptq, sdclip, "quant.matrix_bits=5"}},
          {"mixed int5 and int6, GPTQ, train",
           train,
           {gptq, sdclip, fmt::format("quant.mixed={{count={}, bits=5}}", matrices / 2)}},
          {"percentile int6, rounded", {}, {rtn, percentile}},
          {"percentile int6, GPTQ-lite", {}, {lite, percentile, "quant.choice=\"mse\""}},
          {"percentile int6, GPTQ, train", train, {gptq, percentile, "quant.choice=\"mse\""}},
          {"allocator, bytes of int6 train", train, {gptq, sdclip}, "SDClip int6, GPTQ, train"},
          {"allocator, bytes of k 16", train, {gptq, sdclip}, "SDClip int6 k 16, GPTQ, train"},
          {"allocator, bytes of mixed", train, {gptq, sdclip}, "mixed int5 and int6, GPTQ, train"},
          {"allocator, bytes of int5", train, {gptq, sdclip}, "SDClip int5, GPTQ, train"},
          {"allocator, bytes of percentile", train, {gptq, sdclip}, "percentile int6, GPTQ, train"}};
}

class QuantizeTable {
 public:
  QuantizeTable(Scoring& scoring, const QuantizeBenchOptions& options, Machine& machine, bool quiet,
                const std::function<void(const QuantizeBenchRow&)>& tell)
      : scoring_(scoring), options_(options), machine_(machine), quiet_(quiet), tell_(tell) {}

  void run() {
    const Recipe& recipe = scoring_.source.recipe;
    plain_ = score();
    tell_({"single precision", 4 * parameter_count(recipe.model), 32, plain_, 0, 0});
    trained_ = {recipe, scoring_.source.weights, scoring_.source.folder};
    for (const std::string& change : options_.overrides) apply_override(trained_.recipe, change);
    for (const Setting& row : settings_of(6 * recipe.model.layers)) {
      if (wanted(row)) measure_row(row);
    }
  }

 private:
  bool wanted(const Setting& row) const {
    const std::filesystem::path kept = scoring_.source.folder / kHessianFile;
    if (row.calibration == Calibration::online && !std::filesystem::exists(kept)) return false;
    if (!row.size_of.empty() && !bytes_.contains(row.size_of)) return false;
    if (options_.only.empty()) return true;
    return std::any_of(options_.only.begin(), options_.only.end(),
                       [&](const std::string& part) { return row.name.find(part) != std::string::npos; });
  }
  double score() { return score_stream(scoring_, scoring_.settings, scoring_.stream, machine_, quiet_).score.bits_per_byte(); }
  const HessianStore* hessians(const std::optional<Calibration>& from) {
    if (!from) return nullptr;
    auto found = hessians_.find(*from);
    if (found == hessians_.end()) {
      const CalibrationRequest request{trained_, *from, options_.train_data, own_text()};
      found = hessians_.emplace(*from, make_hessians(request, machine_, single_process(), quiet_)).first;
    }
    return &found->second;
  }
  // Uniform settings need none.
  std::function<TensorMoments()> allocator_moments(const Setting& row) {
    if (row.size_of.empty()) return {};
    return [this, from = row.calibration.value_or(Calibration::self)] { return moments(from); };
  }
  TensorMoments moments(Calibration from) {
    auto found = moments_.find(from);
    if (found == moments_.end()) {
      const CalibrationRequest request{trained_, from, options_.train_data, own_text()};
      found = moments_.emplace(from, make_moments(request, machine_, single_process(), quiet_)).first;
    }
    return found->second;
  }
  SelfCalibration own_text() const {  // one text for all settings: the published one
    SelfCalibration own = SelfCalibration::as_published();
    own.tokens = options_.calibration_tokens;
    return own;
  }
  CalibrationRequest request(const Setting& row) const {
    return {trained_, row.calibration.value_or(Calibration::self), options_.train_data, own_text()};
  }
  void measure_row(const Setting& row) {
    Recipe recipe = scoring_.source.recipe;
    recipe.quant = {};
    for (const std::string& change : row.settings) apply_override(recipe, change);
    for (const std::string& change : options_.overrides) apply_override(recipe, change);
    validate(recipe, row.name);
    const double begun = seconds_now();
    // The allocator gets a byte less than the uniform setting took, so that the latter does not fit.
    const uint64_t budget = row.size_of.empty() ? uint64_t{1} << 40 : bytes_.at(row.size_of) - 1;
    const Fitted fitted =
        fit_model({.weights = *trained_.weights.params,
                   .recipe = recipe,
                   .hessians = hessians(row.calibration),
                   .site = *machine_.executor,
                   .looped = trained_.weights.looped,
                   .tokenizer = {},
                   .budget = budget,
                   .as_published = row.size_of.empty(),
                   .moments = allocator_moments(row),
                   .divergence = [&] { return make_divergence(request(row), machine_, single_process(), quiet_); }});
    const double seconds = seconds_now() - begun;
    bytes_[row.name] = fitted.bytes.size();
    scoring_.source.weights = dequantized(read_artifact(fitted.bytes, row.name), recipe);
    const double bits = score();
    tell_({row.name, static_cast<int64_t>(fitted.bytes.size()), fitted.ledger.bits_per_weight(), bits, bits - plain_, seconds});
  }

  Scoring& scoring_;
  const QuantizeBenchOptions& options_;
  Machine& machine_;
  bool quiet_;
  const std::function<void(const QuantizeBenchRow&)>& tell_;
  WeightSource trained_;
  std::map<Calibration, HessianStore> hessians_;
  std::map<Calibration, TensorMoments> moments_;
  std::map<std::string, uint64_t> bytes_;
  double plain_ = 0;
};

}  // namespace

void bench_quantize(Scoring& scoring, const QuantizeBenchOptions& options, Machine& machine, bool quiet,
                    const std::function<void(const QuantizeBenchRow&)>& tell) {
  QuantizeTable(scoring, options, machine, quiet, tell).run();
}

}  // namespace fairway::bench
