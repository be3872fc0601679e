// --gpus and --ranks: how many ranks a command starts by itself.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fairway::app {

struct RanksWanted {
  int gpus = 0, ranks = 0;  // 0: not asked for
};

void add_ranks_wanted(CLI::App& command, RanksWanted& wanted);

// 1 when this process does the work itself, also as one of the ranks that were started. InputError when the machine has not so
// many devices, or a launcher has started ranks already.
int ranks_to_start(const RanksWanted& wanted, const std::string& backend);

}  // namespace fairway::app
