// fairway: one program, one file per subcommand. Exit status: 0 done, 1 failed or a check did not hold, 2 bad input, 130
// interrupted.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/analyze.h"
#include "app/command.h"
#include "app/console.h"
#include "app/isolated.h"
#include "base/error.h"
#include "base/nearest_word.h"
#include "base/output.h"
#include "stages/guarded_main.h"

namespace {

std::vector<const CLI::App*> parts_of(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::string printable_bytes(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    text += static_cast<unsigned char>(c) < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", c & 0xFF);
  return text;
}

// `fairway data` alone: what could follow.
std::string parts_text(const CLI::App& command) {
  size_t width = 0;
  for (const CLI::App* part : parts_of(command)) width = std::max(width, part->get_name().size());
  std::string text = command.get_name() + ": name one of its parts";
  for (const CLI::App* part : parts_of(command))
    text += fmt::format("\n  {:<{}}  {}", part->get_name(), width, part->get_description());
  return text + fmt::format("\n(see fairway help {})", command.get_name());
}

const CLI::App& chosen_command(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : chosen_command(*chosen.front());
}

// What CLI11 says, or the word it could not place: a mistyped name must not read as "a subcommand is required".
std::string usage_error(const CLI::App& program, const CLI::ParseError& error) {
  std::vector<std::string> unknown = program.remaining(true);
  std::erase(unknown, "--json");  // says how the error is told, and `data` alone does not take it
  std::vector<std::string> known;
  const CLI::App* command = &chosen_command(program);
  if (unknown.empty() && command != &program && !parts_of(*command).empty()) return parts_text(*command);
  if (unknown.empty()) return error.what() + std::string(" (see fairway --help)");
  for (const CLI::App* sub : parts_of(*command)) known.push_back(sub->get_name());
  if (known.empty() && !unknown.front().starts_with('-'))
    return fmt::format("{}: one name too many for {} (see fairway help {})", unknown.front(), command->get_name(),
                       command->get_name());
  for (const CLI::Option* option : command->get_options())
    if (!option->get_positional()) known.push_back(option->get_name());
  return fmt::format("{}: unknown; the nearest is {} (see fairway --help)", unknown.front(),
                     fairway::nearest_word(unknown.front(), known));
}

// Records are JSON, which holds no other text. A prompt may be any bytes.
void require_utf8(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i - 1]) == "--prompt" || std::string_view(argv[i]).starts_with("--prompt=")) continue;
    try {
      (void)nlohmann::json(argv[i]).dump();
    } catch (const nlohmann::json::exception&) {
      throw fairway::InputError(
          fmt::format("{}: is not UTF-8, and records could not name it; expected another name", printable_bytes(argv[i])));
    }
  }
}

int run(int argc, char** argv) {
  using namespace fairway::app;
  require_utf8(argc, argv);
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
  } catch (const CLI::CallForHelp&) {
    fairway::print_out(painted(help_pieces(program, chosen_command(program)), STDOUT_FILENO));
  } catch (const CLI::Success& success) {  // --version
    return program.exit(success);
  } catch (const CLI::ParseError& error) {
    throw fairway::InputError(usage_error(program, error));
  }
  return 0;
}

// With --json a failure is the object on standard output, unless the result is there already; for people it is a line.
void tell(const std::string& sentence, int status) {
  using namespace fairway;
  const size_t name = sentence.find(' ');
  if (app::has_word("--json") && !app::result_printed()) {
    try {
      const nlohmann::ordered_json failure{{"error", sentence.substr(name + 1)}, {"status", status}};
      print_out(failure.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } catch (const WorkError&) {  // standard output is what failed
    }
  }
  print_err(app::painted({{sentence.substr(0, name), app::Tone::bad}, {sentence.substr(name) + "\n"}}, STDERR_FILENO));
}

}  // namespace

void fairway::app::add_commands(CLI::App& program) {
  for (auto* add :
       {add_run,     add_train,   add_score,   add_audit,      add_quantize, add_generate, add_compress, add_decompress,
        add_data,    add_recipes, add_weights, add_import,     add_golden,   add_ops,      add_bench,    add_pack,
        add_compare, add_analyze, add_report,  add_submission, add_doctor,   add_help,     add_isolated})
    add(program);
}

int main(int argc, char** argv) {
  fairway::app::remember_command_line(argc, argv);
  return fairway::guarded_main(
      "fairway", [&] { return run(argc, argv); }, tell);
}
