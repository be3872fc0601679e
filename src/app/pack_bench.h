// `fairway bench pack`, in a file of its own.
#pragma once

#include "app/command.h"

namespace fairway::app {

void add_pack_bench(CLI::App& bench);

}  // namespace fairway::app
