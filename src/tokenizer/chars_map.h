// The normaliser's table inside a SentencePiece model: rules from strings to strings, stored as a double array of darts-clone
// units (uint32 size, the units, then NUL-ended replacements). The library walks it without bounds, so parse() checks it whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fairway {

class CharsMap {
 public:
  CharsMap() = default;  // no rules at all
  bool empty() const { return units_.empty(); }
  // InputError naming `name` unless every step that any text can take, and every replacement, lies inside.
  static CharsMap parse(std::string_view blob, const std::string& name);

  struct Match {
    size_t length = 0;  // of the text it replaces; 0: no rule
    std::string_view replacement;
  };
  Match longest(std::string_view text) const;     // the longest rule that `text` begins with
  bool continues(std::string_view prefix) const;  // some rule begins with `prefix`
  void append_to(std::string& bytes) const;       // all of it, with its sizes

 private:
  void check(const std::string& name) const;

  std::vector<uint32_t> units_;
  std::string strings_;
};

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// What the model file says of normalisation (normalizer.h does it).
struct NormalizerRules {
  CharsMap map;
  bool dummy_prefix = true, collapse_spaces = true, escape_spaces = true;
};

}  // namespace fairway
