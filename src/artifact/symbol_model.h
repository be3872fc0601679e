// Adaptive frequencies of a small alphabet for the entropy coder. Coding uses frequencies scaled to 2^14 or 2^16 that stay
// fixed between refreshes, so a symbol costs a table look-up; counts grow meanwhile. Integer arithmetic only: the decoder must
// arrive at the same tables on any machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace fairway {

// The whole number nearest to a count, in sums and products alone: every decoder must find the same.
inline uint32_t nearest_count(double count) { return static_cast<uint32_t>(static_cast<uint64_t>(2 * count + 1) / 2); }

// Observation: what one symbol adds to its count, so that a prior can hold fractions of a symbol. Shift: a slot finds its
// symbol from the first one of its 2^Shift neighbours.
template <int ScaleBits, uint32_t Observation, int Shift>
class FrequencyModel {
 public:
  struct Range {
    uint16_t start = 0, freq = 0;
  };
  struct Alphabet {
    int first = 0, last = 255;
  };
  enum class Use : uint8_t { encode, decode };  // only decoding needs the table from slots to symbols

  void begin(std::span<const uint32_t> prior);  // one count per symbol, in units of 1/kObservation
  void refresh(Alphabet alphabet, Use use);     // counts to frequencies; every symbol of the alphabet gets at least one
  // A refresh pays once the counts have grown by a sixteenth.
  bool due() const { return pending_ >= 12 && pending_ >= total_ / (16 * kObservation); }

  const Range& range(int symbol) const { return ranges_[static_cast<size_t>(symbol)]; }
  int symbol_at(uint32_t slot) const {
    int symbol = slots_[slot >> Shift];
    if constexpr (Shift > 0) {
      while (slot - range(symbol).start >= range(symbol).freq) ++symbol;
    }
    return symbol;
  }
  void note(int symbol) {
    counts_[static_cast<size_t>(symbol)] += kObservation;
    ++pending_;
  }

  static constexpr uint32_t kObservation = Observation, kScale = 1U << ScaleBits;

 private:
  void fill_slots(Alphabet alphabet);

  std::array<Range, 256> ranges_{};
  std::array<uint32_t, 256> counts_{};
  std::vector<uint8_t> slots_;
  uint32_t total_ = 0;    // of the counts at the last refresh
  uint32_t pending_ = 0;  // observations since then
};

inline constexpr int kScaleBits = 14;
inline constexpr uint32_t kScale = 1U << kScaleBits;
using SymbolModel = FrequencyModel<kScaleBits, 16, 0>;  // of values
// Of weights. Sixteen bits: a symbol that never comes costs the others next to nothing.
inline constexpr int kFineScaleBits = 16;
using FineModel = FrequencyModel<kFineScaleBits, 64, 6>;

}  // namespace fairway
