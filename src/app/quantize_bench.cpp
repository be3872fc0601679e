// `fairway bench quantize`: what each way to quantize a run's weights costs in bytes and in bits per byte, scored from the
// bytes of the file that it would write. The rows are those that published systems differ in: rounding, the search for a clip,
// GPTQ with three calibrations, SDClip and its Hessian-aware form, two widths, and the allocator at the size of uniform
// settings.
#include "app/quantize_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "app/scoring_flags.h"
#include "base/clock.h"
#include "base/output.h"
#include "model/shape/model_shape.h"
#include "pack/fit.h"
#include "stages/calibration.h"

namespace fairway::app {
namespace {

struct TableFlags {
  std::shared_ptr<ScoreRequest> scoring = std::make_shared<ScoreRequest>();
  std::string train_data;
  std::vector<std::string> overrides, only;
  int64_t calibration_tokens = 64 * 2048;
};

struct Row {
  std::string name;
  std::optional<Calibration> calibration;  // none: no Hessians
  std::vector<std::string> settings;
  std::string size_of{};  // allocator: under the bytes that this row took
};

// The best of the three sources that a run always has stands for the settings that are not about calibration.
std::vector<Row> rows_of(int64_t matrices) {
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

class Table {
 public:
  Table(const CommonFlags& common, const TableFlags& flags)
      : common_(common), flags_(flags), machine_(common), scoring_(open_scoring(*flags.scoring)) {}

  int run() {
    const Recipe& recipe = scoring_->source.recipe;
    plain_ = score();
    add("single precision", 4 * parameter_count(recipe.model), 32, plain_, 0);
    trained_ = {recipe, scoring_->source.weights, scoring_->source.folder};
    for (const std::string& change : flags_.overrides) apply_override(trained_.recipe, change);
    for (const Row& row : rows_of(6 * recipe.model.layers)) {
      if (wanted(row)) measure_row(row);
    }
    print_result(common_, {{"rows", lines_}}, text_);
    return 0;
  }

 private:
  bool wanted(const Row& row) const {
    const std::filesystem::path kept = scoring_->source.folder / kHessianFile;
    if (row.calibration == Calibration::online && !std::filesystem::exists(kept)) return false;
    if (!row.size_of.empty() && !bytes_.contains(row.size_of)) return false;
    if (flags_.only.empty()) return true;
    return std::any_of(flags_.only.begin(), flags_.only.end(),
                       [&](const std::string& part) { return row.name.find(part) != std::string::npos; });
  }
  double score() {
    return score_stream(*scoring_, scoring_->settings, scoring_->stream, machine_, common_.quiet).score.bits_per_byte();
  }
  const HessianStore* hessians(const std::optional<Calibration>& from) {
    if (!from) return nullptr;
    auto found = hessians_.find(*from);
    if (found == hessians_.end()) {
      const CalibrationRequest request{trained_, *from, flags_.train_data, flags_.calibration_tokens};
      found = hessians_.emplace(*from, make_hessians(request, machine_, single_process(), common_.quiet)).first;
    }
    return &found->second;
  }
  // Uniform settings need none.
  std::function<TensorMoments()> allocator_moments(const Row& row) {
    if (row.size_of.empty()) return {};
    return [this, from = row.calibration.value_or(Calibration::self)] { return moments(from); };
  }
  TensorMoments moments(Calibration from) {
    auto found = moments_.find(from);
    if (found == moments_.end()) {
      const CalibrationRequest request{trained_, from, flags_.train_data, flags_.calibration_tokens};
      found = moments_.emplace(from, make_moments(request, machine_, single_process(), common_.quiet)).first;
    }
    return found->second;
  }
  void measure_row(const Row& row) {
    Recipe recipe = scoring_->source.recipe;
    recipe.quant = {};
    for (const std::string& change : row.settings) apply_override(recipe, change);
    for (const std::string& change : flags_.overrides) apply_override(recipe, change);
    validate(recipe, row.name);
    const double begun = seconds_now();
    // The allocator gets a byte less than the uniform setting took, so that the latter does not fit.
    const uint64_t budget = row.size_of.empty() ? uint64_t{1} << 40 : bytes_.at(row.size_of) - 1;
    const Fitted fitted = fit_model({.weights = *trained_.weights.params,
                                     .recipe = recipe,
                                     .hessians = hessians(row.calibration),
                                     .site = *machine_.executor,
                                     .looped = trained_.weights.looped,
                                     .tokenizer = {},
                                     .budget = budget,
                                     .as_published = row.size_of.empty(),
                                     .moments = allocator_moments(row)});
    const double seconds = seconds_now() - begun;
    bytes_[row.name] = fitted.bytes.size();
    scoring_->source.weights = dequantized(read_artifact(fitted.bytes, row.name), recipe);
    const double bits = score();
    add(row.name, static_cast<int64_t>(fitted.bytes.size()), fitted.ledger.bits_per_weight(), bits, seconds);
  }
  void add(const std::string& name, int64_t bytes, double per_weight, double bits, double seconds) {
    lines_.push_back({{"name", name},
                      {"bytes", bytes},
                      {"bits_per_weight", per_weight},
                      {"val_bpb", bits},
                      {"damage", bits - plain_},
                      {"seconds", seconds}});
    const std::string line =
        fmt::format("| {} | {} | {:.3f} | {:.5f} | {:.5f} |\n", name, bytes, per_weight, bits, bits - plain_);
    if (text_.empty()) text_ = "| setting | file, bytes | bits per weight | bits per byte | damage |\n|---|---|---|---|---|\n";
    text_ += line;
    if (!common_.quiet) print_err(line);
  }

  const CommonFlags& common_;
  const TableFlags& flags_;
  Machine machine_;
  std::unique_ptr<Scoring> scoring_;
  WeightSource trained_;
  std::map<Calibration, HessianStore> hessians_;
  std::map<Calibration, TensorMoments> moments_;
  std::map<std::string, uint64_t> bytes_;
  nlohmann::ordered_json lines_ = nlohmann::ordered_json::array();
  std::string text_;
  double plain_ = 0;
};

}  // namespace

void add_quantize_bench(CLI::App& bench) {
  auto flags = std::make_shared<TableFlags>();
  CLI::App* command = add_command(bench, "quantize", "bytes and bits per byte of every way to quantize a run",
                                  [flags](const CommonFlags& common) { return Table(common, *flags).run(); });
  add_scoring_flags(*command, flags->scoring, true);
  command->get_option("--set")->description("key=value, changes a key of [score]");
  command->add_option("--quant", flags->overrides, "key=value, changes a key in every row (train.micro_batch_tokens=2048)");
  command->add_option("--train-data", flags->train_data, "folder of training shards (default: RUN/data)");
  command->add_option("--calibration-tokens", flags->calibration_tokens, "tokens of generated calibration text")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--only", flags->only, "only rows whose name contains this text");
}

}  // namespace fairway::app
