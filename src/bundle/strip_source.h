// C++ and CUDA text without what a compiler does not read: comments, indentation, spaces and ends of lines that no token needs.
// Tokens, literals and preprocessor lines stay as they are, except for words that a record does without, which are emptied:
// texts with the suffix _help (recipe/fields.h) and what FAIRWAY_ASSERT and the ops' require() and check_launch() say of a
// mistake in the program.
#pragma once

#include <string>
#include <string_view>

namespace fairway::bundle {

std::string strip_source(std::string_view text);
std::string strip_cmake(std::string_view text);  // lines that are comments, blank lines and indentation

}  // namespace fairway::bundle
