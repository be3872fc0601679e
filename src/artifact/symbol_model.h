// Adaptive frequencies of a small alphabet for the entropy coder. Coding uses frequencies scaled to 2^14 that stay fixed
// between refreshes, so a symbol costs a table look-up; counts grow meanwhile. Integer arithmetic only: the decoder must
// arrive at the same tables on any machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace fairway {

inline constexpr int kScaleBits = 14;
inline constexpr uint32_t kScale = 1U << kScaleBits;

class SymbolModel {
 public:
  struct Range {
    uint16_t start = 0, freq = 0;
  };
  struct Alphabet {
    int first = 0, last = 255;
  };
  enum class Use : uint8_t { encode, decode };  // only decoding needs the table from slots to symbols

  void begin(std::span<const uint16_t> prior);  // one count per symbol, in units of 1/kObservation
  void refresh(Alphabet alphabet, Use use);     // counts to frequencies; every symbol of the alphabet gets at least one
  // A refresh pays once the counts have grown by a sixteenth.
  bool due() const { return pending_ >= 12 && pending_ >= total_ / (16 * kObservation); }

  const Range& range(int symbol) const { return ranges_[static_cast<size_t>(symbol)]; }
  uint8_t symbol_at(uint32_t slot) const { return slots_[slot]; }
  void note(int symbol) {
    counts_[static_cast<size_t>(symbol)] += kObservation;
    ++pending_;
  }

  static constexpr uint32_t kObservation = 16;

 private:
  std::array<Range, 256> ranges_{};
  std::array<uint32_t, 256> counts_{};
  std::vector<uint8_t> slots_;
  uint32_t total_ = 0;    // of the counts at the last refresh
  uint32_t pending_ = 0;  // observations since then
};

}  // namespace fairway
