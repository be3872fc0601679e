// CRC-32 by folding 64 bytes at a time with products without carry (Gopal et al., Intel, 2009). Compiled with flags of its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairway {

inline constexpr size_t kLeastFolded = 64;
// From one remainder (not inverted) to the next; a multiple of 16 bytes, at least kLeastFolded.
uint32_t fold_checksum(uint32_t crc, const char* bytes, size_t count);

}  // namespace fairway
