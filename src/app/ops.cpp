// `fairway ops`: the list of ops; `fairway ops compare RECIPE`: a backend against the reference, call by call.
#include <fmt/core.h>

#include "app/command.h"
#include "autograd/compare.h"
#include "backends/backends.h"
#include "base/error.h"
#include "bench/step_bench.h"
#include "ops/cuda/device.h"

namespace fairway::app {
namespace {

int list_ops(const CommonFlags& flags) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text = fmt::format("{:24} {:14} {}\n", "op", "differentiable", "backends");
  const auto add = [&](std::string_view name, bool differentiable) {
    nlohmann::ordered_json backends{"ref", "cpu"};
    if (cuda::in_build()) backends.push_back("cuda");
    list.push_back({{"name", name}, {"differentiable", differentiable}, {"backends", backends}});
    text += fmt::format("{:24} {:14} ref cpu{}\n", name, differentiable ? "yes" : "no", cuda::in_build() ? " cuda" : "");
  };
#define FAIRWAY_OP(Op) add(Op::name, true);
#define FAIRWAY_PLAIN_OP(Op) add(Op::name, false);
#include "ops/ops.def"
#undef FAIRWAY_OP
#undef FAIRWAY_PLAIN_OP
  print_result(flags, {{"ops", list}}, text);
  return 0;
}

struct OpsCompareFlags {
  std::string recipe;
  std::vector<std::string> overrides;
  int64_t rows = 2, length = 48;
  double tolerance = 1e-10;
  bool looped = false, fake_quant = false;
};

int compare_backends(const CommonFlags& common, const OpsCompareFlags& flags) {
  const Recipe recipe = bench::small_recipe(load_recipe(flags.recipe, flags.overrides), flags.rows, flags.length);
  Machine machine(in_float(common));
  const auto truth = make_executor(Backend::ref, machine.queue);
  const CompareResult r = bench::compare_recipe(recipe, {flags.looped, flags.fake_quant}, *truth, *machine.executor,
                                                flags.tolerance, machine.queue.pool());
  nlohmann::ordered_json result{{"held", !r.first}, {"calls", r.calls}, {"worst", r.worst}, {"tolerance", flags.tolerance}};
  std::string text = fmt::format("{} calls, worst normalised error {:.2e}\n", r.calls, r.worst);
  if (r.first) {
    const Divergence& d = *r.first;
    result["first"] = {{"call", d.call},         {"op", d.op},         {"label", d.label},
                       {"backward", d.backward}, {"tensor", d.tensor}, {"error", d.error}};
    text += fmt::format("first difference: call {}, {} of {} ({}), tensor '{}': {:.2e}\n", d.call,
                        d.backward ? "backward" : "forward", d.op, d.label, d.tensor, d.error);
  }
  print_result(common, result, text + (r.first ? "NOT held\n" : "held\n"));
  return r.first ? 1 : 0;
}

}  // namespace

void add_ops(CLI::App& program) {
  CLI::App* ops = program.add_subcommand("ops", "the ops and their backends");
  ops->require_subcommand(1);
  add_command(*ops, "list", "every op, whether it has a gradient, and where it runs", list_ops);
  auto flags = std::make_shared<OpsCompareFlags>();
  CLI::App* compare = add_command(*ops, "compare", "run a recipe's step on two backends and name the first call that differs",
                                  [flags](const CommonFlags& common) { return compare_backends(common, *flags); });
  compare->add_option("RECIPE", flags->recipe, "a built-in recipe or a TOML file")->required();
  compare->add_option("--set", flags->overrides, "key=value, replaces a key of the recipe")->take_all();
  compare->add_option("--rows", flags->rows, "sequences")->capture_default_str()->check(CLI::Range(1, 1024));
  compare->add_option("--length", flags->length, "tokens of each")->capture_default_str()->check(CLI::Range(1, 65536));
  compare->add_option("--tolerance", flags->tolerance, "largest normalised squared error")
      ->capture_default_str()
      ->check(number_between(0, 1));
  compare->add_flag("--looped", flags->looped, "with depth recurrence");
  compare->add_flag("--fake-quant", flags->fake_quant, "with late quantization-aware training");
}

}  // namespace fairway::app
