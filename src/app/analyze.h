// `fairway analyze`.
#pragma once

#include <CLI/CLI.hpp>

namespace fairway::app {

void add_analyze(CLI::App& program);

}  // namespace fairway::app
