// The program `lrzip`, which decompresses what the group containers of the published records hold (ZPAQ). Called where it is
// installed; there is no library.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fairway::interchange {

// Compressed bytes, how many must come out, the beginning of errors. A test or a fuzzer puts something else in its place.
using Unlrzip = std::function<std::string(std::string_view coded, uint64_t bytes, const std::string& where)>;

// Runs `lrzip -d` from PATH on a file in a temporary folder of its own: no shell, no input, at most kMostLrzipSeconds, and
// files of at most the size that must come out. InputError where lrzip is not installed or the stream is not one of `bytes`
// bytes.
std::string unlrzip(std::string_view coded, uint64_t bytes, const std::string& where);
inline constexpr double kMostLrzipSeconds = 300;

}  // namespace fairway::interchange
