// Numbers in files, lowest byte first.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fairway::interchange {

// The caller has checked that they are there.
template <class Number>
Number number_at(std::string_view bytes, uint64_t at) {
  Number value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <class Number>
void put_number(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace fairway::interchange
