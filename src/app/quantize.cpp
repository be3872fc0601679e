// `fairway quantize`: a run's averaged weights on the recipe's grids, with what each tensor lost.
#include "quant/quantize_model.h"

#include <fmt/core.h>

#include "app/named_inputs.h"
#include "app/quantizing_flags.h"
#include "app/run_memory.h"
#include "artifact/artifact.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "base/writer_lock.h"
#include "stages/quantizing.h"
#include "stages/ranks.h"

namespace fairway::app {
namespace {

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

// The recipe's setting as a file; `pack` is the command that fits a budget.
void save_quantized(const std::string& out, const WeightSource& source, const std::string& tokenizer, QuantizedModel model) {
  model.looped = source.weights.looped;
  model.tokenizer = tokenizer;
  save_artifact(out, write_artifact(model));
}

int run_quantize(CommonFlags common, QuantizeRequest request) {
  Communicator& comm = meet_ranks(common);
  require_model(request.from);
  if (!request.data.empty()) require_data(request.data);
  if (request.data.empty()) request.data = remembered_data(request.from).value_or("").string();
  request.tokenizer = named_tokenizer(request.from, "");
  const double begun = seconds_now();
  std::optional<WriterLock> lock;
  if (!request.out.empty()) {
    require_place_for_file(request.out);
    if (comm.root()) lock.emplace(WriterLock::of_file(request.out));
  }
  const WeightSource source = open_quantizing(request);
  Machine machine(common);
  ProgressLine line(common.quiet);
  const QuantizingInput input =
      prepare_quantizing(source, request, SelfCalibration::as_published(), machine, comm, common.quiet);
  QuantReport report;
  const QuantizedModel model =
      quantize_model(*source.weights.params, source.recipe, input.found(), *machine.executor, report, comm);
  for (const std::string& fallback : report.fallbacks()) line.say(fallback);
  if (!request.out.empty() && comm.root()) save_quantized(request.out, source, input.tokenizer, model);
  const double seconds = seconds_now() - begun, bytes = estimated_bits(model) / 8;
  if (!comm.root()) return 0;
  print_result(common,
               {{"tensors", to_json(report)},
                {"calibration", input.found() != nullptr ? std::string(name_of(source.recipe.quant.calibration)) : "none"},
                {"estimated_bytes", static_cast<int64_t>(bytes)},
                {"calibration_seconds", input.calibration_seconds},
                {"seconds", seconds}},
               fmt::format("{}{} tensors, about {} bytes, in {:.1f} s ({:.1f} s of it calibration)\n", to_text(report),
                           report.tensors.size(), quantity_text(bytes), seconds, input.calibration_seconds));
  return 0;
}

}  // namespace

void add_quantize(CLI::App& program) {
  auto flags = std::make_shared<QuantizeRequest>();
  CLI::App* command = add_command(
      program, "quantize", "quantize a run's averaged weights by the recipe's own setting",
      [flags](const CommonFlags& common) { return run_quantize(common, *flags); }, Ranks::shared);
  add_quantizing_flags(*command, flags);
  command->add_option("--out", flags->out, "also write it as an artifact (.fwy)");
}

}  // namespace fairway::app
