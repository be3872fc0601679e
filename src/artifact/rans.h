// Range asymmetric numeral systems (Duda, 2013): two interleaved 32-bit states in [2^16, 2^32), refilled by 16-bit words.
// Encoding runs backwards, so the encoder keeps the ranges of all symbols until finish(). Every fault of the bytes shows:
// words that run out, words left over, or states that do not end where encoding began.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/symbol_model.h"

namespace fairway {

inline constexpr uint32_t kRansFloor = 1U << 16;
inline constexpr size_t kRansStateBytes = 8;

class RansEncoder {
 public:
  // Symbols alternate between the states by `lane`, which the decoder must repeat.
  void put(const SymbolModel::Range& range, int lane) {
    kept_.push_back(static_cast<uint32_t>(range.start) << 16 | static_cast<uint32_t>(range.freq) << 1 |
                    static_cast<uint32_t>(lane));
  }
  void reserve(size_t symbols) { kept_.reserve(symbols); }
  std::string finish() const {
    std::vector<uint16_t> words;
    words.reserve(kept_.size() / 3 + 8);
    uint32_t states[2] = {kRansFloor, kRansFloor};
    for (size_t i = kept_.size(); i-- > 0;) {
      const uint32_t entry = kept_[i], freq = entry >> 1 & 0x7FFF, start = entry >> 16;
      uint32_t x = states[entry & 1];
      if (x >= uint64_t{freq} << (32 - kScaleBits)) words.push_back(static_cast<uint16_t>(x)), x >>= 16;
      states[entry & 1] = (x / freq << kScaleBits) + x % freq + start;
    }
    std::string out(8 + 2 * words.size(), '\0');
    std::memcpy(out.data(), states, 8);  // little-endian, as everything in the file
    for (size_t i = 0; i < words.size(); ++i) std::memcpy(out.data() + 8 + 2 * i, &words[words.size() - 1 - i], 2);
    return out;
  }

 private:
  std::vector<uint32_t> kept_;  // start, freq, lane
};

class RansDecoder {
 public:
  static constexpr int kMostPerCheck = 64;  // get() may run this often between two calls of ran_out()

  explicit RansDecoder(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {
    bytes_.resize(std::max<size_t>(size_, 8) + 2 * kMostPerCheck + 2);
    std::memcpy(states_, bytes_.data(), 8);
    place_ = 8;
  }
  int get(const SymbolModel& model, int lane) {
    uint32_t x = states_[lane];
    const uint32_t slot = x & (kScale - 1);
    const int symbol = model.symbol_at(slot);
    const SymbolModel::Range range = model.range(symbol);
    x = range.freq * (x >> kScaleBits) + slot - range.start;
    uint16_t word;
    std::memcpy(&word, bytes_.data() + place_, 2);
    const bool low = x < kRansFloor;
    states_[lane] = low ? x << 16 | word : x;
    place_ += low ? 2 : 0;
    return symbol;
  }
  bool ran_out() const { return place_ > size_; }
  bool ended_well() const { return place_ == size_ && states_[0] == kRansFloor && states_[1] == kRansFloor; }

 private:
  std::string bytes_;  // padded, so that get() needs no check of its own
  size_t size_, place_ = 0;
  uint32_t states_[2] = {0, 0};
};

}  // namespace fairway
