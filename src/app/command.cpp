#include "app/command.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace fairway::app {
namespace {

int thread_count(int asked) {
  if (asked < 0 || asked > 1024) throw InputError(fmt::format("--threads {}: expected 1 to 1024, or 0 for all", asked));
  return asked == 0 ? hardware_threads() : asked;
}

}  // namespace

Machine::Machine(const CommonFlags& flags)
    : queue(thread_count(flags.threads)), executor(make_executor(parse_backend(flags.backend), queue)) {}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help, Body body) {
  CLI::App* command = parent.add_subcommand(name, help);
  auto flags = std::make_shared<CommonFlags>();
  command->add_flag("--json", flags->json, "print one JSON object on standard output, logs on standard error");
  command->add_flag("--quiet", flags->quiet, "print nothing but errors and, with --json, the result");
  command->add_option("--backend", flags->backend, "cpu, cuda or ref")->capture_default_str();
  command->add_option("--threads", flags->threads, "threads to use (0: all)")->capture_default_str();
  command->callback([flags, body] {
    if (const int status = body(*flags); status != 0) throw CLI::RuntimeError(status);
  });
  return command;
}

void print_result(const CommonFlags& flags, const nlohmann::ordered_json& result, const std::string& text) {
  if (flags.json) {
    fmt::print("{}\n", result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!flags.quiet) {
    fmt::print("{}", text);
  }
  std::fflush(stdout);
}

}  // namespace fairway::app
