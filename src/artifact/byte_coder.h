// Our coder for the small parts: values of one, two or four bytes, split into planes (all high bytes, then the next), each
// coded by adaptive order-0 rANS or, where that does not pay, kept as it is.
#pragma once

#include <string>
#include <string_view>

namespace fairway {

// `values` holds little-endian values of `width` bytes each.
std::string encode_values(std::string_view values, size_t width);
// Returns exactly `bytes` bytes. InputError, beginning with `where`, when the input is not what encode_values makes for them.
std::string decode_values(std::string_view coded, size_t width, size_t bytes, const std::string& where);

}  // namespace fairway
