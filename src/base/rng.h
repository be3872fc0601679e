// Random numbers that depend on the seed alone: Philox4x32-10 (Salmon et al., SC'11), a counter run through a keyed mixer.
// The state is four words, so saving it in a checkpoint and continuing gives the same sequence on any machine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace fairway {

// One Philox block: ten rounds over a 128-bit counter with a 64-bit key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

struct RngState {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t drawn = 0;       // 64-bit words handed out so far
  uint64_t spare_bits = 0;  // the second normal of a Box-Muller pair, as bits
  uint64_t has_spare = 0;   // 0 or 1
  bool operator==(const RngState&) const = default;
};

class Rng {
 public:
  explicit Rng(uint64_t seed, uint64_t stream = 0) { state_.seed = seed, state_.stream = stream; }

  uint64_t next_u64();
  double uniform01();              // 53 random bits, in [0, 1)
  uint64_t below(uint64_t bound);  // uniform in [0, bound), without bias; bound > 0
  double normal();                 // mean 0, variance 1

  template <class T>
  void shuffle(std::span<T> items) {  // Fisher-Yates
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

  const RngState& save() const { return state_; }
  void restore(const RngState& state);

 private:
  RngState state_;
  uint64_t block_ = ~0ULL;  // which counter block `words_` holds
  std::array<uint64_t, 2> words_{};
};

}  // namespace fairway
