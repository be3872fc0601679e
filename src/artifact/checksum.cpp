#include <array>
#include <cstring>

#include "artifact/artifact.h"
#include "artifact/checksum_fold.h"

namespace fairway {

namespace {

constexpr size_t kSlices = 8;
using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b does to the remainder k bytes later.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? value >> 1 ^ 0xEDB88320U : value >> 1;
    tables[0][i] = value;
  }
  for (size_t k = 1; k < kSlices; ++k)
    for (size_t i = 0; i < 256; ++i) tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xFF];
  return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

// CRC-32 as in zlib and PNG: reflected, polynomial EDB88320; by products without carry where the machine has them, else eight
// bytes a step.
uint32_t artifact_checksum(std::string_view bytes) {
  uint32_t crc = ~0U;
#if defined(__x86_64__)
  if (bytes.size() >= kLeastFolded && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")) {
    const size_t whole = bytes.size() & ~size_t{15};
    crc = fold_checksum(crc, bytes.data(), whole);
    bytes.remove_prefix(whole);
  }
#endif
  for (; bytes.size() >= kSlices; bytes.remove_prefix(kSlices)) {
    uint64_t next;
    std::memcpy(&next, bytes.data(), kSlices);
    next ^= crc;
    crc = 0;
    for (size_t k = 0; k < kSlices; ++k) crc ^= kTables[kSlices - 1 - k][next >> (8 * k) & 0xFF];
  }
  for (const char c : bytes) crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xFF];
  return ~crc;
}

}  // namespace fairway
