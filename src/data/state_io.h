// Loader and sampler states as bytes: fixed 64-bit words, little endian, read back with every length checked.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/rng.h"

namespace fairway::data {

static_assert(std::endian::native == std::endian::little, "shards and states are little endian and read as they are");

class StateWriter {
 public:
  explicit StateWriter(std::vector<std::byte>& out) : out_(out) { out_.clear(); }  // keeps the capacity

  void put(uint64_t word) {
    out_.resize(out_.size() + sizeof word);
    std::memcpy(out_.data() + out_.size() - sizeof word, &word, sizeof word);
  }
  void put(const RngState& state) {
    for (const uint64_t word : {state.seed, state.stream, state.drawn, state.spare_bits, state.has_spare}) put(word);
  }

 private:
  std::vector<std::byte>& out_;
};

class StateReader {
 public:
  explicit StateReader(std::span<const std::byte> in) : in_(in) {}

  uint64_t word() {
    if (in_.size() < sizeof(uint64_t)) throw InputError("the saved state of the data loader is shorter than expected");
    uint64_t value = 0;
    std::memcpy(&value, in_.data(), sizeof value);
    in_ = in_.subspan(sizeof value);
    return value;
  }
  // A word that must not exceed `largest`: a damaged state must not send a sampler out of its shards.
  uint64_t word(uint64_t largest) {
    const uint64_t value = word();
    if (value > largest) throw InputError("the saved state of the data loader holds a value that cannot be");
    return value;
  }
  void expect(uint64_t value, const char* sentence) {
    if (word() != value) throw InputError(sentence);
  }
  RngState rng() {
    RngState state;
    for (uint64_t* field : {&state.seed, &state.stream, &state.drawn, &state.spare_bits, &state.has_spare}) *field = word();
    return state;
  }
  void end() const {
    if (!in_.empty()) throw InputError("the saved state of the data loader is longer than expected");
  }

 private:
  std::span<const std::byte> in_;
};

}  // namespace fairway::data
