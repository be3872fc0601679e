// Numbers, bytes and edits of a text as adaptive binary decisions in a range coder's stream.
#pragma once

#include <array>
#include <vector>

#include "textcode/range_coder.h"
#include "tokenizer/text_changes.h"

namespace fairway::textcode {

// One decision: the chance of a 1 in 4096ths, which follows what came.
class BitModel {
 public:
  void put(RangeEncoder& out, bool bit) {
    out.put(share(bit), kTotal);
    learn(bit);
  }
  bool get(RangeDecoder& in) {
    const bool bit = in.slot(kTotal) < one_;
    in.take(share(bit), kTotal);
    learn(bit);
    return bit;
  }

 private:
  static constexpr uint64_t kTotal = 1 << 12;
  static constexpr int kSlowest = 5;
  Share share(bool bit) const { return bit ? Share{0, one_} : Share{one_, kTotal - one_}; }
  void learn(bool bit) {  // quick at first, so that a few decisions tell something already
    const int shift = seen_ < kSlowest - 1 ? ++seen_ + 1 : kSlowest;
    const int to = bit ? (1 << 12) - 31 : 31;
    one_ = static_cast<uint16_t>(one_ + (to - one_) / (1 << shift));
  }
  uint16_t one_ = kTotal / 2;
  uint8_t seen_ = 0;
};

// A number of kBits bits, or of fewer where both sides know how many, high bit first.
template <int kBits>
class TreeModel {
 public:
  void put(RangeEncoder& out, uint32_t value, int bits = kBits) {
    for (uint32_t node = 1, bit = static_cast<uint32_t>(bits); bit-- > 0;) {
      const bool one = (value >> bit & 1) != 0;
      bits_[node].put(out, one);
      node = 2 * node + (one ? 1 : 0);
    }
  }
  uint32_t get(RangeDecoder& in, int bits = kBits) {
    uint32_t node = 1;
    for (int i = 0; i < bits; ++i) node = 2 * node + (bits_[node].get(in) ? 1 : 0);
    return node - (1U << bits);
  }

 private:
  std::array<BitModel, size_t{1} << kBits> bits_;
};

// Any number below 2^48: its length one by one, so that small numbers are cheap from the beginning; the bits behind the first
// as far as a tree learns them; the rest as they are.
class NumberModel {
 public:
  void put(RangeEncoder& out, uint64_t value);
  uint64_t get(RangeDecoder& in);

 private:
  static constexpr int kLearned = 4, kLengths = 49;
  std::array<BitModel, kLengths> longer_;  // than this many bits
  std::array<TreeModel<kLearned>, kLengths> high_;
};

// Bytes after one another, each told by the one before.
class ByteModel {
 public:
  ByteModel() : models_(256) {}
  void put(RangeEncoder& out, uint8_t before, uint8_t byte) { models_[before].put(out, byte); }
  uint8_t get(RangeDecoder& in, uint8_t before) { return static_cast<uint8_t>(models_[before].get(in)); }

 private:
  std::vector<TreeModel<8>> models_;
};

// An edit that begins at a space is told by the spaces passed since the last one: of text in lines that is where most are.
void put_edits(RangeEncoder& out, std::span<const TextEdit> edits, std::string_view read);
// InputError for edits that leave the text, or that insert more than `most` bytes together.
std::vector<TextEdit> get_edits(RangeDecoder& in, std::string_view read, uint64_t most);
double bits_of_edits(std::span<const TextEdit> edits, std::string_view read);  // 0 when there are none

}  // namespace fairway::textcode
