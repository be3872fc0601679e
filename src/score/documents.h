// Documents of a stream (scoring spec §2.6): one begins at each start token and its targets go on through the next start token,
// so that every token but the first of the stream is a target of exactly one document.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fairway {

struct DocumentRange {
  int64_t first = 0, end = 0;  // targets [first, end); the input before `first` is the document's start token
  int64_t count() const { return end - first; }
};

inline std::vector<DocumentRange> document_ranges(std::span<const uint16_t> stream, int64_t bos) {
  std::vector<DocumentRange> out;
  const auto last = static_cast<int64_t>(stream.size()) - 1;
  int64_t first = 1;
  for (int64_t t = 1; t <= last; ++t) {
    if (stream[static_cast<size_t>(t)] != bos && t != last) continue;
    out.push_back({first, t + 1});
    first = t + 1;
  }
  return out;
}

}  // namespace fairway
