#include "base/nearest_word.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace fairway {
namespace {

constexpr size_t kMostTyped = 128;  // longer words than any key are mistyped beyond help; the cut keeps tables small

std::vector<std::string_view> parts_of(std::string_view key) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= key.size();) {
    const size_t dot = std::min(key.find('.', at), key.size());
    parts.push_back(key.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

// Of the typed parts to the key's, in order: a part of the key may be left out for 1, a typed one for its length.
int part_distance(const std::vector<std::string_view>& typed, const std::vector<std::string_view>& key) {
  std::vector<int> row(key.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (const std::string_view part : typed) {
    int diagonal = row[0];
    row[0] += static_cast<int>(part.size()) + 1;
    for (size_t j = 1; j <= key.size(); ++j) {
      const int replaced = diagonal + edit_distance(part, key[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + static_cast<int>(part.size()) + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_word(std::string_view word, std::span<const std::string> candidates) {
  const std::string_view typed = word.substr(0, kMostTyped);
  int best = std::numeric_limits<int>::max();
  std::string found;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(typed, candidate);
    if (distance < best) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

std::vector<std::string> nearest_keys(std::string_view typed, std::span<const std::string> keys) {
  const std::vector<std::string_view> parts = parts_of(typed.substr(0, kMostTyped));
  int best = std::numeric_limits<int>::max();
  std::vector<std::string> found;
  for (const std::string& key : keys) {
    const int distance = part_distance(parts, parts_of(key));
    if (distance > best) continue;
    if (distance < best) found.clear();
    best = distance;
    found.push_back(key);
  }
  return found;
}

}  // namespace fairway
