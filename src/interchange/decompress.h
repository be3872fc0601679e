// The compressors around published artifacts. Each reader takes a limit and stops there, refuses a stream that ends early and
// one that something follows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairway::interchange {

std::string decompress_xz(std::string_view coded, uint64_t limit, const std::string& where);
std::string decompress_zlib(std::string_view coded, uint64_t limit, const std::string& where);
std::string decompress_brotli(std::string_view coded, uint64_t limit, const std::string& where);

bool is_shuffled(std::string_view bytes);  // begins with BSHF
// "BSHF", a stride, then every stride-th byte from the first on, from the second on … Published files have stride 2.
std::string unshuffled(std::string_view bytes, const std::string& where);

}  // namespace fairway::interchange
