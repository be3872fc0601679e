// `fairway golden FILE`: runs a stored case of a reference model and compares loss, gradients or a whole trajectory.
#include <fmt/core.h>

#include "app/command.h"
#include "golden/golden.h"

namespace fairway::app {
namespace {

int run_golden(const CommonFlags& flags, const std::string& path) {
  Machine machine(in_float(flags));
  const Safetensors file = Safetensors::read(path);
  if (golden::is_trajectory(file)) {
    const golden::TrajectoryResult r = golden::run_trajectory(file, *machine.executor);
    print_result(flags,
                 {{"held", r.held},
                  {"steps", r.steps},
                  {"worst_loss_rel_err", r.worst_loss},
                  {"worst_grad_norm_rel_err", r.worst_grad_norm},
                  {"worst_final_rel_err", r.worst_final},
                  {"worst_ema_rel_err", r.worst_ema},
                  {"backend", flags.backend}},
                 fmt::format("{}: {} steps, worst relative error: loss {:.2e}, gradient norm {:.2e}, final weights {:.2e} "
                             "({}), EMA {:.2e}\n{}\n",
                             path, r.steps, r.worst_loss, r.worst_grad_norm, r.worst_final, r.worst_final_name, r.worst_ema,
                             r.held ? "held" : "NOT held"));
    return r.held ? 0 : 1;
  }
  const golden::CaseResult r = golden::run_case(file, *machine.executor);
  print_result(flags,
               {{"held", r.held},
                {"loss", r.loss},
                {"loss_expected", r.loss_expected},
                {"loss_rel_err", r.loss_error},
                {"worst_grad", {{"name", r.worst_grad_name}, {"rel_err", r.worst_grad}}},
                {"logits_rel_err", r.logits_error},
                {"hidden_rel_err", r.hidden_error},
                {"backend", flags.backend}},
               fmt::format("{}: loss {:.9f}, expected {:.9f} (relative error {:.2e}); worst gradient {} ({:.2e}); logits "
                           "{:.2e}, hidden {:.2e}\n{}\n",
                           path, r.loss, r.loss_expected, r.loss_error, r.worst_grad_name, r.worst_grad, r.logits_error,
                           r.hidden_error, r.held ? "held" : "NOT held"));
  return r.held ? 0 : 1;
}

}  // namespace

void add_golden(CLI::App& program) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = add_command(program, "golden", "run a golden case and compare with its stored values",
                                  [path](const CommonFlags& flags) { return run_golden(flags, *path); });
  command->add_option("FILE", *path, "a golden .safetensors file")->required();
}

}  // namespace fairway::app
