// fairway: one program, one file per subcommand. Exit status: 0 done, 1 failed or a check did not hold, 2 bad input, 130
// interrupted.
#include <fmt/core.h>

#include "app/command.h"
#include "base/error.h"

namespace {

int run(int argc, char** argv) {
  using namespace fairway::app;
  CLI::App program{"Fairway trains, averages and scores the best language model for a byte and clock budget."};
  program.name("fairway");
  program.require_subcommand(1);
  program.set_version_flag("--version", "fairway " FAIRWAY_VERSION);
  program.failure_message(CLI::FailureMessage::help);
  for (auto* add :
       {add_train, add_score, add_generate, add_data, add_recipes, add_weights, add_golden, add_ops, add_bench, add_doctor})
    add(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {  // a command's own exit status
    return error.get_exit_code();
  } catch (const CLI::Success& success) {  // --help, --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "fairway: {} (see fairway --help)\n", error.what());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const fairway::InputError& error) {
    fmt::print(stderr, "fairway: {}\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "fairway: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fairway: {}\n", error.what());
    return 1;
  }
}
