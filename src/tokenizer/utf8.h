// UTF-8 one character at a time.
#pragma once

#include <string_view>

namespace fairway {

// Bytes of the character `text` begins with; 0 when it begins with none: over-long forms, surrogates, values past U+10FFFF and
// characters cut short are none.
inline size_t utf8_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
  // The second byte alone decides over-long forms, surrogates and values past U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < low || at(1) > high) return 0;
  for (size_t i = 2; i < size; ++i)
    if ((at(i) & 0xC0) != 0x80) return 0;
  return size;
}

inline bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = utf8_character(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace fairway
