// `fairway bench scaling`: the predicted step on several GPUs, collective by collective, and the same model held against
// published step times.
#include <fmt/core.h>

#include <map>

#include "app/command.h"
#include "bench/scaling.h"

namespace fairway::app {
namespace {

using nlohmann::ordered_json;

struct ScalingFlags {
  std::string recipe = "pr1105", gpu = "h100", schedule = "packed";
  bench::ScalingInputs inputs;
};

// Collectives of one name are one line: the published schedule has dozens of equal ones.
std::string table_of(const bench::StepModel& model, ordered_json& lines) {
  struct Line {
    int calls = 0;
    double bytes = 0, ms = 0, exposed = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Line> byname;
  for (const bench::Collective& c : model.collectives) {
    Line& line = byname[c.name];
    if (line.calls++ == 0) order.push_back(c.name);
    line.bytes += c.bytes;
    line.ms += c.end_ms - c.start_ms;
    line.exposed += c.exposed_ms;
  }
  std::string text = fmt::format("{:28} {:>6} {:>9} {:>9} {:>11}\n", "collective", "calls", "MB sent", "ms", "exposed ms");
  for (const std::string& name : order) {
    const Line& line = byname[name];
    lines.push_back(
        {{"name", name}, {"calls", line.calls}, {"bytes", line.bytes}, {"ms", line.ms}, {"exposed_ms", line.exposed}});
    text += fmt::format("{:28} {:6} {:9.2f} {:9.3f} {:11.3f}\n", name, line.calls, line.bytes * 1e-6, line.ms, line.exposed);
  }
  return text;
}

std::string checks_text(ordered_json& checks) {
  std::string text = "\nthe model against published steps of the PyTorch stack on 8 H100:\n";
  for (const bench::Anchor& anchor : bench::published_steps()) {
    const double predicted = bench::model_step(load_recipe(anchor.recipe), bench::find_gpu("h100"), {}).step_ms;
    const double error = predicted / anchor.published_ms - 1;
    checks.push_back(
        {{"recipe", anchor.recipe}, {"published_ms", anchor.published_ms}, {"predicted_ms", predicted}, {"error", error}});
    text += fmt::format("  {:14} published {:.1f} ms, predicted {:.1f} ms ({:+.1f}%)\n", anchor.recipe, anchor.published_ms,
                        predicted, 100 * error);
  }
  return text;
}

int bench_scaling(const CommonFlags& common, ScalingFlags flags) {
  flags.inputs.schedule = bench::find_schedule(flags.schedule);
  const bench::StepModel model = bench::model_step(load_recipe(flags.recipe), bench::find_gpu(flags.gpu), flags.inputs);
  ordered_json lines = ordered_json::array(), checks = ordered_json::array();
  const std::string table = table_of(model, lines), checked = checks_text(checks);
  print_result(common,
               {{"recipe", flags.recipe},
                {"gpu", flags.gpu},
                {"ranks", flags.inputs.ranks},
                {"schedule", flags.schedule},
                {"predicted_ms", model.step_ms},
                {"passes_ms", model.passes_ms},
                {"optimizer_ms", model.optimizer_ms},
                {"wire_ms", model.wire_ms},
                {"exposed_ms", model.exposed_ms},
                {"hidden", model.hidden()},
                {"collectives", lines},
                {"checks", checks}},
               fmt::format("{} on {} x {}, schedule {}: predicted {:.2f} ms a step (passes {:.2f}, optimizer {:.2f}, waiting "
                           "{:.3f})\n{:.0f}% of {:.3f} ms of collectives is hidden\n\n{}{}",
                           flags.recipe, flags.inputs.ranks, flags.gpu, flags.schedule, model.step_ms, model.passes_ms,
                           model.optimizer_ms, model.exposed_ms, 100 * model.hidden(), model.wire_ms, table, checked));
  return 0;
}

}  // namespace

void add_scaling_bench(CLI::App& bench) {
  auto flags = std::make_shared<ScalingFlags>();
  CLI::App* command = add_command(bench, "scaling", "a model of the step on several GPUs, compared with published times",
                                  [flags](const CommonFlags& common) { return bench_scaling(common, *flags); });
  command->add_option("--recipe", flags->recipe, "a built-in recipe or a TOML file")->capture_default_str();
  command->add_option("--gpu", flags->gpu, "h100 or h200")->capture_default_str();
  command->add_option("--schedule", flags->schedule, "published, packed or early")->capture_default_str();
  command->add_option("--ranks", flags->inputs.ranks, "GPUs")->capture_default_str()->check(CLI::Range(2, 1024));
  command->add_option("--tokens", flags->inputs.tokens, "tokens per GPU and step")
      ->capture_default_str()
      ->check(number_between(1, 1e9));
  command->add_option("--passes-ms", flags->inputs.passes_ms, "measured forward and backward (default: the PyTorch stack's)")
      ->check(number_between(0.001, 1e7));
}

}  // namespace fairway::app
