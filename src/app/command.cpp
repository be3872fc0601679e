#include "app/command.h"

#include <fmt/core.h>
#include <unistd.h>

#include "app/ranks_wanted.h"
#include "backends/backends.h"
#include "base/error.h"
#include "base/output.h"
#include "comm/launch.h"
#include "comm/start_ranks.h"

namespace fairway::app {
namespace {

constexpr int kMostThreads = 1024;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
bool json_printed = false;

void require_one_process(const std::string& name) {
  const Launch launch = find_launch();
  if (launch.kind != Launch::Kind::mpi) return;
  throw InputError(fmt::format("{} = {}: fairway {} runs in one process only; train, score, quantize and pack can use several",
                               launch.variable, launch.size, name));
}

// A number of bytes, or one with a unit.
CLI::Validator size_in_bytes() {
  const auto to_bytes = [](std::string& text) {
    const std::string given = text;
    try {
      uint64_t value = 0;
      CLI::AsSizeValue(true)(text);
      if (CLI::detail::lexical_cast(text, value) && value >= 1 && value <= kMostBytes) return std::string();
    } catch (const CLI::ValidationError&) {  // its sentence lists every unit there is
    }
    return fmt::format("{}: expected a number of bytes from 1 to {}, or a size such as 500KB or 16MB", given, kMostBytes);
  };
  return {to_bytes, "SIZE"};
}

}  // namespace

CommonFlags in_float(CommonFlags flags) {
  if (flags.backend == "cuda") flags.backend = "cuda-f32";
  return flags;
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help, const Body& body, Ranks ranks) {
  CLI::App* command = parent.add_subcommand(name, help);
  auto flags = std::make_shared<CommonFlags>();
  flags->backend = default_backend();
  command->add_flag("--json", flags->json, "print one JSON object on standard output, also of an error; logs on standard error")
      ->group(kEveryCommand);
  command->add_flag("--quiet", flags->quiet, "print no progress and no notes, only the result and errors")
      ->group(kEveryCommand);
  command->add_option("--color", flags->color, "colours: auto (on a terminal, unless NO_COLOR is set), always or never")
      ->group(kEveryCommand)
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command->add_option("--backend", flags->backend, "cpu, cuda or ref")->group(kEveryCommand)->capture_default_str();
  command->add_option("--threads", flags->threads, "threads to use (0: all)")
      ->group(kEveryCommand)
      ->capture_default_str()
      ->check(CLI::Range(0, kMostThreads));
  auto wanted = std::make_shared<RanksWanted>();
  if (ranks == Ranks::shared) add_ranks_wanted(*command, *wanted);
  command->callback([flags, wanted, body, name, ranks] {
    if (ranks == Ranks::refused) require_one_process(name);
    parse_backend(flags->backend);  // refused by every command, also by those that compute nothing
    if (const int count = ranks_to_start(*wanted, flags->backend); count > 1) {
      if (const int status = start_ranks(count, command_line()); status != 0) throw CLI::RuntimeError(status);
      return;
    }
    if (const int status = body(*flags); status != 0) throw CLI::RuntimeError(status);
  });
  return command;
}

CLI::Validator number_between(double least, double most) {
  return {[=](const std::string& text) {
            double value = 0;
            const bool held = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
            return held ? std::string() : fmt::format("{} is not a number from {} to {}", text, least, most);
          },
          "NUMBER"};
}

void add_budget(CLI::App& command, uint64_t& bytes) {
  command
      .add_option("--budget", bytes,
                  "largest size of the artifact in bytes, or as 500KB, 16MB (default: 16000000 minus the code)")
      ->transform(size_in_bytes());
}

void add_memory(CLI::App& command, uint64_t& bytes) {
  command
      .add_option(
          "--memory", bytes,
          "most memory that training may take, in bytes or as 8GB (default: what is free); the micro-batch is chosen to fit")
      ->transform(size_in_bytes());
}

void add_allow_shared(CLI::App& command, bool& allow) {
  command.add_flag("--allow-shared-documents", allow,
                   "train on documents that the validation text has too; such a run is never legal");
}

void print_result(const CommonFlags& flags, const nlohmann::ordered_json& result, const Pieces& text) {
  if (flags.json) {
    print_out(result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    json_printed = true;
  } else {
    print_out(painted(text, STDOUT_FILENO));
  }
}

void print_result(const CommonFlags& flags, const nlohmann::ordered_json& result, const std::string& text) {
  print_result(flags, result, Pieces{{text}});
}

bool result_printed() { return json_printed; }

}  // namespace fairway::app
