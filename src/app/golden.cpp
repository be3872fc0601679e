// `fairway golden FILE`: runs a stored case of a reference model and compares loss, gradients or a whole trajectory. On a
// device it computes as training does, in bf16 with bounds of its own; cuda-f32 is held to those of float.
#include <fmt/core.h>

#include "app/command.h"
#include "golden/golden.h"

namespace fairway::app {
namespace {

using golden::TensorError;
using nlohmann::ordered_json;

ordered_json errors_json(const std::vector<TensorError>& errors) {
  ordered_json out = ordered_json::object();
  for (const TensorError& tensor : errors) out[tensor.name] = tensor.error;
  return out;
}

ordered_json limits_json(const std::vector<TensorError>& errors) {
  ordered_json out = ordered_json::object();
  for (const TensorError& tensor : errors) out[tensor.name] = tensor.limit;
  return out;
}

int compare_case(const CommonFlags& flags, const std::string& path, const Safetensors& file, Machine& machine) {
  const golden::CaseResult r = golden::run_case(file, *machine.executor);
  const TensorError& worst = golden::worst_of(r.gradients);
  print_result(
      flags,
      {{"held", r.held},
       {"loss", r.loss},
       {"loss_expected", r.loss_expected},
       {"loss_rel_err", r.loss_error},
       {"worst_grad", {{"name", worst.name}, {"rel_err", worst.error}}},
       {"logits_rel_err", r.logits_error},
       {"hidden_rel_err", r.hidden_error},
       {"grads_rel_err", errors_json(r.gradients)},
       {"grad_limits", limits_json(r.gradients)},
       {"limits", {{"loss", r.limits.loss}, {"state", r.limits.state}}},
       {"backend", flags.backend}},
      fmt::format("{}: loss {:.9f}, expected {:.9f} (relative error {:.2e}, limit {:.0e}); worst gradient {} ({:.2e}, limit "
                  "{:.0e}); logits {:.2e}, hidden {:.2e} (limit {:.0e})\n{}\n",
                  path, r.loss, r.loss_expected, r.loss_error, r.limits.loss, worst.name, worst.error, worst.limit,
                  r.logits_error, r.hidden_error, r.limits.state, r.held ? "held" : "NOT held"));
  return r.held ? 0 : 1;
}

int compare_trajectory(const CommonFlags& flags, const std::string& path, const Safetensors& file, Machine& machine) {
  const golden::TrajectoryResult r = golden::run_trajectory(file, *machine.executor);
  const TensorError &last = golden::worst_of(r.final_weights), &average = golden::worst_of(r.averages);
  print_result(
      flags,
      {{"held", r.held},
       {"steps", r.losses.size()},
       {"worst_loss_rel_err", r.worst_loss},
       {"worst_grad_norm_rel_err", r.worst_grad_norm},
       {"worst_final_rel_err", last.error},
       {"worst_ema_rel_err", average.error},
       {"losses_rel_err", r.losses},
       {"grad_norms_rel_err", r.gradient_norms},
       {"final_rel_err", errors_json(r.final_weights)},
       {"ema_rel_err", errors_json(r.averages)},
       {"limits", {{"loss", r.limits.step_loss}, {"weights", r.limits.weights}, {"ema", r.limits.average}}},
       {"backend", flags.backend}},
      fmt::format("{}: {} steps, worst relative error: loss {:.2e} (limit {:.0e}), gradient norm {:.2e}, final weights "
                  "{:.2e} ({}, limit {:.0e}), EMA {:.2e} ({}, limit {:.0e})\n{}\n",
                  path, r.losses.size(), r.worst_loss, r.limits.step_loss, r.worst_grad_norm, last.error, last.name, last.limit,
                  average.error, average.name, average.limit, r.held ? "held" : "NOT held"));
  return r.held ? 0 : 1;
}

int run_golden(const CommonFlags& flags, const std::string& path) {
  const Safetensors file = Safetensors::read(path);
  Machine machine(flags);
  return golden::is_trajectory(file) ? compare_trajectory(flags, path, file, machine)
                                     : compare_case(flags, path, file, machine);
}

}  // namespace

void add_golden(CLI::App& program) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = add_command(program, "golden", "run a golden case and compare with its stored values",
                                  [path](const CommonFlags& flags) { return run_golden(flags, *path); });
  command->add_option("FILE", *path, "a golden .safetensors file")->required();
}

}  // namespace fairway::app
