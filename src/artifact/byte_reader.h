// Bytes read from the front, with a sentence when they run out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fairway {

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string where) : bytes_(bytes), where_(std::move(where)) {}

  size_t left() const { return bytes_.size(); }
  std::string_view take(uint64_t count, const char* what) {
    if (count > bytes_.size()) {
      throw InputError(where_ + "ends inside " + what + ": " + std::to_string(count) + " bytes wanted, " +
                       std::to_string(bytes_.size()) + " left");
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  uint8_t byte(const char* what) { return static_cast<uint8_t>(take(1, what)[0]); }
  // Seven bits a byte, lowest first; at most 56 bits, in the shortest form.
  uint64_t varint(const char* what) {
    uint64_t value = 0;
    for (int shift = 0; shift < 56; shift += 7) {
      const uint8_t next = byte(what);
      value |= uint64_t{next & 0x7FU} << shift;
      if (next < 0x80) {
        if (next == 0 && shift > 0) throw InputError(where_ + "a number in " + what + " is not in its shortest form");
        return value;
      }
    }
    throw InputError(where_ + "a number in " + what + " is longer than eight bytes");
  }

 private:
  std::string_view bytes_;
  std::string where_;
};

inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace fairway
