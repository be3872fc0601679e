// `fairway quantize`: a run's averaged weights on the recipe's grids, with what each tensor lost.
#include "quant/quantize_model.h"

#include <fmt/core.h>

#include "app/calibration.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "recipe/spelling.h"
#include "score/eval_model.h"

namespace fairway::app {
namespace {

struct QuantizeFlags {
  std::string from, recipe, calibration, data;
  std::vector<std::string> overrides;
  int64_t tokens = 64 * 2048;
};

nlohmann::ordered_json to_json(const QuantReport& report) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const TensorReport& t : report.tensors) {
    out.push_back({{"name", t.name},
                   {"bits", t.bits},
                   {"scale_rule", t.scale_rule},
                   {"loss", t.loss},
                   {"mean_square", t.mean_square},
                   {"entropy", t.entropy},
                   {"gptq", t.gptq}});
  }
  return out;
}

std::string to_text(const QuantReport& report) {
  std::string text =
      fmt::format("{:28} {:>4} {:20} {:>12} {:>12} {:>8}\n", "tensor", "bits", "scale", "loss", "mean square", "entropy");
  for (const TensorReport& t : report.tensors)
    text += fmt::format("{:28} {:>4} {:20} {:>12.4e} {:>12.4e} {:>8.3f}\n", t.name, t.bits, t.scale_rule, t.loss, t.mean_square,
                        t.entropy);
  return text;
}

bool wants_hessians(const QuantRecipe& quant) {
  if (quant.rule == QuantRule::rtn) return false;
  return quant.rule == QuantRule::gptq || quant.choice == ClipChoice::hessian || quant.scale == ScaleRule::hessian_sdclip;
}

int run_quantize(const CommonFlags& common, const QuantizeFlags& flags) {
  const double begun = steady_seconds();
  std::vector<std::string> overrides = flags.overrides;
  if (!flags.calibration.empty()) overrides.push_back(fmt::format("quant.calibration=\"{}\"", flags.calibration));
  const WeightSource source = open_weights(flags.from, flags.recipe, overrides);
  const Recipe& recipe = source.recipe;
  if (source.folder.empty() && recipe.quant.calibration != Calibration::self && flags.data.empty())
    throw InputError(flags.from + ": a lone weight file has no data or Hessians of its run; use --calibration self or --data");
  const ParamStore weights(parameter_table(recipe), ParamStore::Gradients::none);
  load_weights(weights, source.weights);
  Machine machine(common);
  ProgressLine line(common.quiet);
  std::optional<HessianStore> hessians;
  if (wants_hessians(recipe.quant) || !flags.calibration.empty())
    hessians = make_hessians({source, weights, recipe.quant.calibration, flags.data, flags.tokens}, machine, common.quiet);
  const double calibrated = steady_seconds();
  QuantReport report;
  const QuantizedModel model = quantize_model(weights, recipe, hessians ? &*hessians : nullptr, machine.queue, report);
  for (const std::string& fallback : report.fallbacks()) line.say(fallback);
  const double ended = steady_seconds(), bytes = estimated_bits(model) / 8;
  print_result(common,
               {{"tensors", to_json(report)},
                {"calibration", hessians ? std::string(name_of(recipe.quant.calibration)) : "none"},
                {"estimated_bytes", static_cast<int64_t>(bytes)},
                {"calibration_seconds", calibrated - begun},
                {"quantize_seconds", ended - calibrated},
                {"seconds", ended - begun}},
               fmt::format("{}{} tensors, about {} bytes, in {:.1f} s ({:.1f} s of it calibration)\n", to_text(report),
                           report.tensors.size(), quantity_text(bytes), ended - begun, calibrated - begun));
  return 0;
}

}  // namespace

void add_quantize(CLI::App& program) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = add_command(program, "quantize", "a run's averaged weights on the recipe's grids",
                                  [flags](const CommonFlags& common) { return run_quantize(common, *flags); });
  command->add_option("RUN", flags->from, "a run folder, or a .safetensors file with --recipe")->required();
  command->add_option("--recipe", flags->recipe, "the recipe of a lone weight file");
  command->add_option("--calibration", flags->calibration, "self, train or online (default: the recipe's)")
      ->check(CLI::IsMember({"self", "train", "online"}));
  command->add_option("--data", flags->data, "folder of shards for --calibration train (default: RUN/data)");
  command->add_option("--tokens", flags->tokens, "of --calibration self")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  command->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
}

}  // namespace fairway::app
