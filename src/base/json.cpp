#include "base/json.h"

#include <fmt/core.h>

#include "base/error.h"

namespace fairway {
namespace {

// Each takes some 50 bytes for two of the file: 60 MB of empty arrays took 4.3 GB. No record has a thousandth of it.
constexpr size_t kMostJsonValues = 1'000'000;

}  // namespace

// Brackets and commas count outside of strings only. Up to the first byte that is no JSON this is the parser's own level, and
// behind it the parser builds nothing.
void require_flat_json(std::string_view text, const std::string& name, int most) {
  int level = 0;
  size_t values = 1;
  const auto count = [&](size_t at) {
    if (++values <= kMostJsonValues) return;
    throw InputError(fmt::format("{}: its JSON has more than {} values at byte {}", name, kMostJsonValues, at));
  };
  bool inside = false;  // a string
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '\\') ++i;
      if (c == '"') inside = false;
    } else if (c == '"') {
      inside = true;
    } else if (c == '[' || c == '{') {
      if (++level > most) throw InputError(fmt::format("{}: its JSON nests deeper than {} levels at byte {}", name, most, i));
      count(i);
    } else if (c == ',') {
      count(i);
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
}

template <class Json>
Json parse_json(std::string_view text, const std::string& name) {
  require_flat_json(text, name);
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError(fmt::format("{}: is not JSON at byte {}: {}", name, error.byte, error.what()));
  } catch (const nlohmann::json::exception& error) {  // a number that no double holds
    throw InputError(fmt::format("{}: is not JSON: {}", name, error.what()));
  }
}

template <class Json>
Json parse_json_or_discard(std::string_view text, const std::string& name) {
  require_flat_json(text, name);
  return Json::parse(text, nullptr, false);
}

template nlohmann::json parse_json(std::string_view, const std::string&);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&);
template nlohmann::json parse_json_or_discard(std::string_view, const std::string&);
template nlohmann::ordered_json parse_json_or_discard(std::string_view, const std::string&);

}  // namespace fairway
