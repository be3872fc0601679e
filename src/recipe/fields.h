// What a recipe's visit() functions speak. Each struct of a recipe declares its keys once, in
// `visit(self, fields)`: name, value, range, help. The parser, the canonical dump, the JSON form and the key table are
// `fields` objects; a key's default is the member's initialiser.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fairway {

struct Between {  // both ends allowed; for a list, of every entry
  double least, most;
};

// What a key means, for people: a record's sources do without (bundle/strip_source.h).
struct Help {
  std::string_view text;
};
consteval Help operator""_help(const char* text, std::size_t length) { return {{text, length}}; }

// The spelling in TOML of an enum's values, in the order of the enumerators.
template <class Enum>
struct EnumNames;

template <class Enum>
constexpr std::string_view name_of(Enum value) {
  return EnumNames<Enum>::names[static_cast<std::size_t>(value)];
}

}  // namespace fairway
