#include "tokenizer/chars_map.h"

#include <fmt/core.h>

#include <cstring>

#include "base/error.h"

namespace fairway {
namespace {

constexpr int kMostMatches = 32;  // the library looks at no more prefixes that are rules

[[noreturn]] void fail(const std::string& name, const char* what) {
  throw InputError(fmt::format("{}: not a usable SentencePiece model: its character map {}", name, what));
}

// A unit holds a label, whether a leaf follows, and where the children lie; a leaf's unit holds its value.
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }
bool has_label(uint32_t unit, uint32_t byte) { return (unit & 0x800000FFU) == byte; }
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFFU; }

}  // namespace

CharsMap CharsMap::parse(std::string_view blob, const std::string& name) {
  CharsMap map;
  uint32_t trie_bytes = 0;
  if (blob.size() < 4) fail(name, "is shorter than its header");
  std::memcpy(&trie_bytes, blob.data(), 4);
  if (trie_bytes > blob.size() - 4 || trie_bytes % 4 != 0 || trie_bytes < 4) fail(name, "has a wrong size");
  map.units_.resize(trie_bytes / 4);
  std::memcpy(map.units_.data(), blob.data() + 4, trie_bytes);
  map.strings_ = std::string(blob.substr(4 + trie_bytes));
  if (!map.strings_.empty() && map.strings_.back() != '\0') fail(name, "has a last string without end");
  map.check(name);
  return map;
}

void CharsMap::check(const std::string& name) const {
  std::vector<bool> seen(units_.size());
  std::vector<uint32_t> open;
  const auto push = [&](uint32_t node) {
    if ((node | 255U) >= units_.size()) fail(name, "points outside itself");
    if (seen[node]) return;
    seen[node] = true;
    open.push_back(node);
  };
  push(offset_of(units_[0]));
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t at = node ^ byte;
      if (!has_label(units_[at], byte)) continue;
      const uint32_t next = at ^ offset_of(units_[at]);
      push(next);
      if (has_leaf(units_[at]) && value_of(units_[next]) >= strings_.size()) fail(name, "points past its strings");
    }
  }
}

CharsMap::Match CharsMap::longest(std::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t node = offset_of(units_[0]);
  int matches = 0;
  for (size_t i = 0; i < text.size() && matches < kMostMatches; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    const uint32_t unit = units_[node];
    if (!has_label(unit, byte)) break;
    node ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    match = {i + 1, std::string_view(strings_.data() + value_of(units_[node]))};
    ++matches;
  }
  return match;
}

void CharsMap::append_to(std::string& bytes) const {
  for (const uint64_t size : {units_.size(), strings_.size()}) bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(reinterpret_cast<const char*>(units_.data()), units_.size() * sizeof(uint32_t));
  bytes += strings_;
}

bool CharsMap::continues(std::string_view prefix) const {
  if (units_.empty()) return prefix.empty();
  uint32_t node = offset_of(units_[0]);
  for (const char c : prefix) {
    const auto byte = static_cast<unsigned char>(c);
    node ^= byte;
    if (!has_label(units_[node], byte)) return false;
    node ^= offset_of(units_[node]);
  }
  return true;
}

}  // namespace fairway
