// C++ and CUDA text without what a compiler does not read: comments, blank lines, indentation, spaces that no token needs.
// Tokens, literals and preprocessor lines stay as they are, except that texts with the suffix _help (recipe/fields.h) are
// emptied.
#pragma once

#include <string>
#include <string_view>

namespace fairway::bundle {

std::string strip_source(std::string_view text);
std::string strip_cmake(std::string_view text);  // lines that are comments, blank lines and indentation

}  // namespace fairway::bundle
