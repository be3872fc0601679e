// `fairway bench quantize`.
#pragma once

#include "app/command.h"

namespace fairway::app {

void add_quantize_bench(CLI::App& bench);

}  // namespace fairway::app
