// fairway: one program, one file per subcommand. Exit status: 0 done, 1 failed or a check did not hold, 2 bad input, 130
// interrupted.
#include <fmt/core.h>

#include "app/analyze.h"
#include "app/command.h"
#include "app/isolated.h"
#include "base/error.h"
#include "base/nearest_word.h"
#include "stages/guarded_main.h"

namespace {

// What CLI11 says, or the word it could not place: a mistyped name must not read as "a subcommand is required".
std::string usage_error(const CLI::App& program, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = program.remaining(true);
  if (unknown.empty()) return error.what();
  std::vector<std::string> known;
  const CLI::App* command = &program;
  for (;;) {
    const auto chosen = command->get_subcommands();
    if (chosen.empty()) break;
    command = chosen.front();
  }
  for (const CLI::App* sub : command->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); }))
    known.push_back(sub->get_name());
  for (const CLI::Option* option : command->get_options()) known.push_back(option->get_name());
  return fmt::format("{}: unknown; the nearest is {}", unknown.front(), fairway::nearest_word(unknown.front(), known));
}

int run(int argc, char** argv) {
  using namespace fairway::app;
  CLI::App program{
      "Fairway trains, averages, quantizes, packs and scores the best language model for a byte and clock budget."};
  program.name("fairway");
  program.require_subcommand(1);
  program.set_version_flag("--version", "fairway " FAIRWAY_VERSION);
  program.failure_message(CLI::FailureMessage::help);
  add_commands(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {  // a command's own exit status
    return error.get_exit_code();
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    throw fairway::InputError(usage_error(program, error) + " (see fairway --help)");
  }
  return 0;
}

}  // namespace

void fairway::app::add_commands(CLI::App& program) {
  for (auto* add : {add_run,     add_train,   add_score,      add_audit,  add_quantize, add_generate, add_data,
                    add_recipes, add_weights, add_golden,     add_ops,    add_bench,    add_pack,     add_compare,
                    add_analyze, add_report,  add_submission, add_doctor, add_help,     add_isolated})
    add(program);
}

int main(int argc, char** argv) {
  return fairway::guarded_main("fairway", [&] { return run(argc, argv); });
}
