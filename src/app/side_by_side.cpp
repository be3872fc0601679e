#include <map>

#include "app/writer.h"

namespace fairway::app {
namespace {

bool continues(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }  // inside a letter of UTF-8

// Lines of at most `width` letters, broken at spaces where there are some.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  size_t letters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines.emplace_back(), letters = 0;
      continue;
    }
    if (letters == width && !continues(text[i])) {
      const size_t space = lines.back().rfind(' ');
      std::string rest;
      if (space != std::string::npos && space > 0) {
        rest = lines.back().substr(space + 1);
        lines.back().resize(space);
      }
      lines.push_back(rest);
      letters = 0;
      for (const char c : rest) letters += continues(c) ? 0 : 1;
    }
    lines.back() += text[i];
    letters += continues(text[i]) ? 0 : 1;
  }
  return lines;
}

std::string padded(const std::string& line, size_t width) {
  size_t letters = 0;
  for (const char c : line) letters += continues(c) ? 0 : 1;
  return line + std::string(width - std::min(width, letters), ' ');
}

}  // namespace

std::string side_by_side(const std::string& left, const std::string& right, size_t width) {
  const size_t column = std::max<size_t>(10, (width - std::min<size_t>(width, 3)) / 2);
  const std::vector<std::string> a = wrapped(left, column), b = wrapped(right, column);
  std::string out;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i)
    out += padded(i < a.size() ? a[i] : "", column) + " | " + (i < b.size() ? b[i] : "") + "\n";
  return out;
}

Likeness likeness(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const size_t longest = std::max(a.size(), b.size());
  if (longest == 0) return {1, 1};
  size_t equal = 0, shared = 0;
  std::map<int32_t, size_t> left;
  for (const int32_t token : a) ++left[token];
  for (size_t i = 0; i < b.size(); ++i) {
    if (i < a.size() && a[i] == b[i]) ++equal;
    if (const auto at = left.find(b[i]); at != left.end() && at->second > 0) --at->second, ++shared;
  }
  return {static_cast<double>(equal) / static_cast<double>(longest),
          static_cast<double>(shared) / static_cast<double>(longest)};
}

}  // namespace fairway::app
