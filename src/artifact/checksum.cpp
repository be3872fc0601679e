#include <array>

#include "artifact/artifact.h"

namespace fairway {

// CRC-32 as in zlib and PNG: reflected, polynomial EDB88320.
uint32_t artifact_checksum(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320U : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

}  // namespace fairway
