#include "artifact/symbol_model.h"

#include <algorithm>

#include "base/error.h"

namespace fairway {

template <int ScaleBits, uint32_t Observation, int Shift>
void FrequencyModel<ScaleBits, Observation, Shift>::begin(std::span<const uint32_t> prior) {
  counts_.fill(0);
  std::copy(prior.begin(), prior.end(), counts_.begin());
  total_ = 0, pending_ = 0;
}

template <int ScaleBits, uint32_t Observation, int Shift>
void FrequencyModel<ScaleBits, Observation, Shift>::refresh(Alphabet alphabet, Use use) {
  constexpr uint32_t kMostTotal = kObservation << 17;  // then counts are halved: old weights fade
  uint32_t all = 0;
  for (const uint32_t count : counts_) all += count;
  if (all > kMostTotal) {
    for (uint32_t& count : counts_) count = (count + 1) / 2;
  }
  const auto first = static_cast<size_t>(alphabet.first), end = static_cast<size_t>(alphabet.last) + 1;
  uint32_t inside = 0, most = 0;
  for (size_t s = first; s < end; ++s) inside += counts_[s], most = std::max(most, counts_[s]);
  // (count·scale + inside/2)/inside. Both are whole and below 2^40, so that the quotient of doubles lies on the right side of
  // every whole number; many of them are divided at once.
  const double whole = std::max(inside, 1U), half = inside / 2;
  std::array<int32_t, 256> freqs;
  int32_t sum = 0;
  for (size_t s = first; s < end; ++s) {
    const auto freq = static_cast<int32_t>((static_cast<double>(static_cast<int32_t>(counts_[s])) * kScale + half) / whole);
    freqs[s] = std::min(std::max(freq, 1), 0xFFFF);
    sum += freqs[s];
  }
  // Rounding and the floor of one move the sum by at most half the alphabet up or its size down, far below the share
  // that the likeliest of 256 symbols has: at least 64 of 16384 before rounding, and all that was added lies in the others.
  int32_t left = static_cast<int32_t>(kScale) - sum;
  int32_t& sink = freqs[static_cast<size_t>(std::find(&counts_[first], &counts_[0] + end, most) - &counts_[0])];
  if (left < 0 && sink <= -left) {  // flat and wide: take one each from whoever has two
    for (size_t s = first; s < end && left < 0; ++s)
      if (freqs[s] > 1) --freqs[s], ++left;
  }
  FAIRWAY_ASSERT(left > -sink, "frequencies do not fit their scale");
  sink += left;
  uint32_t start = 0;
  for (size_t s = first; s < end; ++s) {
    ranges_[s] = {static_cast<uint16_t>(start), static_cast<uint16_t>(freqs[s])};
    start += static_cast<uint32_t>(freqs[s]);
  }
  if (use == Use::decode) fill_slots(alphabet);
  total_ = all > kMostTotal ? all / 2 : all;
  pending_ = 0;
}

template <int ScaleBits, uint32_t Observation, int Shift>
void FrequencyModel<ScaleBits, Observation, Shift>::fill_slots(Alphabet alphabet) {
  constexpr uint32_t kStep = 1U << Shift;
  slots_.resize(kScale >> Shift);
  uint32_t begin = 0;
  for (int s = alphabet.first; s <= alphabet.last; ++s) {
    const Range range = ranges_[static_cast<size_t>(s)];
    const uint32_t end = (range.start + range.freq + kStep - 1U) >> Shift;
    for (; begin < end; ++begin) slots_[begin] = static_cast<uint8_t>(s);
  }
}

template class FrequencyModel<kScaleBits, 16, 0>;
template class FrequencyModel<kFineScaleBits, 64, 6>;

}  // namespace fairway
