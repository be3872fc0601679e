// A cursor over protobuf wire format: tags, varints, lengths and fixed words, every read inside its bounds.
#pragma once

#include <fmt/core.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fairway {

class WireReader {
 public:
  WireReader(std::string_view bytes, size_t place, const std::string& name) : bytes_(bytes), place_(place), name_(name) {}

  struct Field {
    uint32_t number = 0;
    uint64_t value = 0;      // varints and fixed words
    std::string_view bytes;  // length-delimited
    size_t place = 0;        // of `bytes` in the whole file
    uint32_t wire = 0;
  };

  bool next(Field& field) {
    if (at_ == bytes_.size()) return false;
    const uint64_t tag = varint();
    field = {static_cast<uint32_t>(tag >> 3), 0, {}, 0, static_cast<uint32_t>(tag & 7)};
    if (field.number == 0 || tag >> 32 != 0) fail("a field number");
    switch (field.wire) {
      case 0: field.value = varint(); break;
      case 1: field.value = fixed(8); break;
      case 2: {
        const uint64_t length = varint();
        if (length > bytes_.size() - at_) fail("a field that ends inside the file");
        field.bytes = bytes_.substr(at_, length);
        field.place = place_ + at_;
        at_ += length;
        break;
      }
      case 5: field.value = fixed(4); break;
      default: fail("a known wire type");
    }
    return true;
  }

  [[noreturn]] void fail(const char* expected) const {
    throw InputError(fmt::format("{}: not a SentencePiece model: expected {} at byte {}", name_, expected, place_ + at_));
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) fail("a complete number");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    fail("a number of at most ten bytes");
  }
  uint64_t fixed(size_t width) {
    if (width > bytes_.size() - at_) fail("a complete number");
    uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, width);
    at_ += width;
    return value;
  }

  std::string_view bytes_;
  size_t place_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace fairway
