// What the subcommands share: the flags every command takes, and how results are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "app/console.h"
#include "stages/machine.h"

namespace fairway::app {

struct CommonFlags : Compute {
  bool json = false;
  std::string color = "auto";  // read off the command line before it is parsed (console.h)
};
// The same flags for comparisons, which a device does in float.
CommonFlags in_float(CommonFlags flags);

inline constexpr const char* kEveryCommand = "every command";  // the parser's group of the flags above

// What a command does when a launcher has started several processes.
enum class Ranks : unsigned char {
  refused,  // they would all do the same work and write the same files
  shared,   // they share the work; --gpus and --ranks start them without a launcher
  allowed,  // each does it for itself
};

// A subcommand's body returns the exit status; it is called after the flags are parsed.
using Body = std::function<int(const CommonFlags&)>;
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help, const Body& body,
                      Ranks ranks = Ranks::refused);

// For --flags that take a number: CLI11's own range lets NaN pass.
CLI::Validator number_between(double least, double most);

// --budget of an artifact: bytes, or a number with a unit, 16MB or 500KB (of thousands; MiB of 1024s).
void add_budget(CLI::App& command, uint64_t& bytes);

// --memory of commands that train.
void add_memory(CLI::App& command, uint64_t& bytes);

// --allow-shared-documents of commands that train.
void add_allow_shared(CLI::App& command, bool& allow);

// One JSON object on standard output with --json, else the text.
void print_result(const CommonFlags& flags, const nlohmann::ordered_json& result, const Pieces& text);
void print_result(const CommonFlags& flags, const nlohmann::ordered_json& result, const std::string& text);
bool result_printed();

// The tree of commands, filled in by main.cpp.
void add_commands(CLI::App& program);

void add_golden(CLI::App& program);
void add_recipes(CLI::App& program);
void add_train(CLI::App& program);
void add_data(CLI::App& program);
void add_overlap(CLI::App& data);
void add_fetch(CLI::App& data);
void add_score(CLI::App& program);
void add_audit(CLI::App& program);
void add_generate(CLI::App& program);
void add_compress(CLI::App& program);
void add_decompress(CLI::App& program);
void add_quantize(CLI::App& program);
void add_weights(CLI::App& program);
void add_import(CLI::App& program);
void add_ops(CLI::App& program);
void add_bench(CLI::App& program);
void add_pack(CLI::App& program);
void add_pack_bench(CLI::App& bench);
void add_quantize_bench(CLI::App& bench);
void add_generate_bench(CLI::App& bench);
void add_adapters_bench(CLI::App& bench);
void add_tilt_bench(CLI::App& bench);
void add_attention_bench(CLI::App& bench);
void add_scaling_bench(CLI::App& bench);
void add_ranks_bench(CLI::App& bench);
void add_compare(CLI::App& program);
void add_report(CLI::App& program);
void add_doctor(CLI::App& program);
void add_run(CLI::App& program);
void add_submission(CLI::App& program);
void add_help(CLI::App& program);

// The text of `fairway help` for a command of the program.
Pieces help_pieces(const CLI::App& program, const CLI::App& command);

}  // namespace fairway::app
