// Range asymmetric numeral systems (Duda, 2013), refilled by 16-bit words. Encoding runs backwards, so the encoder keeps the
// ranges of all symbols until finish(). RansEncoder has two interleaved states in [2^16, 2^32), eight bytes however short the
// stream; FineEncoder has one in [2^32, 2^48) that grows from kFineFirst, so that a stream costs about two bytes.
#pragma once

#include <algorithm>
#include <cmath>
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
  // Every fault of the bytes shows: words that run out, words left over, states that do not end where encoding began.
  bool ran_out() const { return place_ > size_; }
  bool ended_well() const { return place_ == size_ && states_[0] == kRansFloor && states_[1] == kRansFloor; }

 private:
  std::string bytes_;  // padded, so that get() needs no check of its own
  size_t size_, place_ = 0;
  uint32_t states_[2] = {0, 0};
};

inline constexpr uint64_t kFineFirst = 0xA5;               // a state that faulty bytes seldom lead to
inline constexpr uint64_t kFineFloor = uint64_t{1} << 32;  // far above the scale: what division rounds away is next to nothing
inline constexpr size_t kFineMostState = 6;                // bytes

class FineEncoder {
 public:
  void put(const FineModel::Range& range) { kept_.push_back(uint32_t{range.start} << 16 | range.freq); }
  void put_bits(uint32_t value, int bits) {  // 1 to 15, each value as likely
    kept_.push_back(value << (32 - bits) | 1U << (16 - bits));
  }
  size_t count() const { return kept_.size(); }
  double bits_since(size_t first) const {  // of the symbols from this one on
    double bits = 0;
    for (size_t i = first; i < kept_.size(); ++i) bits += kFineScaleBits - std::log2(static_cast<double>(kept_[i] & 0xFFFF));
    return bits;
  }
  void reserve(size_t symbols) { kept_.reserve(symbols); }
  // The state in as few bytes as it needs where that is all, else in five or six; words are even, so the length tells which.
  std::string finish() const {
    std::vector<uint16_t> words;
    words.reserve(kept_.size() / 3 + 8);
    uint64_t x = kFineFirst;
    for (size_t i = kept_.size(); i-- > 0;) {
      const uint64_t freq = kept_[i] & 0xFFFF, start = kept_[i] >> 16;
      if (x >= freq << 32) words.push_back(static_cast<uint16_t>(x)), x >>= 16;
      x = (x / freq << kFineScaleBits) + x % freq + start;
    }
    size_t state = words.empty() ? 1 : kFineMostState - 1;
    while (state < kFineMostState && x >> (8 * state) != 0) ++state;
    std::string out(state + 2 * words.size(), '\0');
    std::memcpy(out.data(), &x, state);  // little-endian, as everything in the file
    for (size_t i = 0; i < words.size(); ++i) std::memcpy(out.data() + state + 2 * i, &words[words.size() - 1 - i], 2);
    return out;
  }

 private:
  std::vector<uint32_t> kept_;  // start, freq
};

class FineDecoder {
 public:
  explicit FineDecoder(std::string_view bytes) : place_(bytes.data()), end_(bytes.data() + bytes.size()) {
    const size_t state = bytes.size() <= kFineMostState ? bytes.size() : kFineMostState - bytes.size() % 2;
    std::memcpy(&state_, place_, state);
    place_ += state;
  }
  int get(const FineModel& model) {
    const auto slot = static_cast<uint32_t>(state_ & 0xFFFF);
    const int symbol = model.symbol_at(slot);
    leave(slot, model.range(symbol));
    return symbol;
  }
  // By a table of 2^11 slots (lane_tables.h); the symbol in its lowest byte.
  uint32_t get_entry(const uint32_t* entries) {
    const auto slot = static_cast<uint32_t>(state_ & 0xFFFF);
    const uint32_t entry = entries[slot >> 5];
    refill((uint64_t{entry >> 8 & 0xFFF} << 5) * (state_ >> 16) + ((entry >> 20) << 5 | (slot & 31)));
    return entry;
  }
  uint32_t get_bits(int bits) {
    const auto slot = static_cast<uint32_t>(state_ & 0xFFFF);
    const uint32_t value = slot >> (16 - bits);
    leave(slot, {static_cast<uint16_t>(value << (16 - bits)), static_cast<uint16_t>(1U << (16 - bits))});
    return value;
  }
  bool ended_well() const { return place_ == end_ && state_ == kFineFirst; }

 private:
  // Once the words are used up the state shrinks to where it began; of faulty bytes it shrinks to something else.
  void leave(uint32_t slot, FineModel::Range range) { refill(range.freq * (state_ >> 16) + slot - range.start); }
  void refill(uint64_t x) {
    if (x < kFineFloor && place_ != end_) {
      uint16_t word;
      std::memcpy(&word, place_, 2);
      place_ += 2;
      x = x << 16 | word;
    }
    state_ = x;
  }

  const char *place_, *end_;
  uint64_t state_ = 0;
};

}  // namespace fairway
