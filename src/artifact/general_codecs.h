// The general compressors that the published systems use (scoring spec §6.2): Brotli at quality 11 and LZMA at preset 9, after
// a byte shuffle of stride 2 (all bytes at even offsets, then those at odd ones). Decoders take the size that must come out
// and refuse more, less, or input left over; their own memory is bounded by that size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fairway {

std::string byte_shuffle(std::string_view bytes);
std::string byte_unshuffle(std::string_view bytes);

// Brotli at its best takes 1.5 to 4 ms a kilobyte; with little effort, a hundredth of that.
enum class BrotliEffort : uint8_t { little, most };
std::string brotli_encode(std::string_view bytes, BrotliEffort effort = BrotliEffort::most);
std::string brotli_decode(std::string_view coded, size_t bytes, const std::string& where);
std::string lzma_encode(std::string_view bytes);
std::string lzma_decode(std::string_view coded, size_t bytes, const std::string& where);

}  // namespace fairway
