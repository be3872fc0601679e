// Text that a flag names: a file, or - for standard input.
#pragma once

#include <string>

namespace fairway::app {

std::string read_text_input(const std::string& file, const std::string& flag);  // InputError beyond 256 MiB

}  // namespace fairway::app
