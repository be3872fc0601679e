#include "artifact/symbol_model.h"

#include <algorithm>
#include <cstring>

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
  uint64_t inside = 0;
  for (int s = alphabet.first; s <= alphabet.last; ++s) inside += counts_[static_cast<size_t>(s)];
  int64_t left = kScale;
  int likeliest = alphabet.first;
  for (int s = alphabet.first; s <= alphabet.last; ++s) {
    const uint32_t count = counts_[static_cast<size_t>(s)];
    const uint64_t freq = inside == 0 ? 1 : (uint64_t{count} * kScale + inside / 2) / inside;
    ranges_[static_cast<size_t>(s)].freq = static_cast<uint16_t>(std::clamp<uint64_t>(freq, 1, 0xFFFF));
    left -= ranges_[static_cast<size_t>(s)].freq;
    if (count > counts_[static_cast<size_t>(likeliest)]) likeliest = s;
  }
  // Rounding and the floor of one move the sum by at most half the alphabet up or its size down, far below the share
  // that the likeliest of 256 symbols has: at least 64 of 16384 before rounding, and all that was added lies in the others.
  Range* sink = &ranges_[static_cast<size_t>(likeliest)];
  if (left < 0 && sink->freq <= -left) {  // flat and wide: take one each from whoever has two
    for (int s = alphabet.first; s <= alphabet.last && left < 0; ++s) {
      Range& range = ranges_[static_cast<size_t>(s)];
      if (range.freq > 1) --range.freq, ++left;
    }
  }
  FAIRWAY_ASSERT(left > -static_cast<int64_t>(sink->freq), "frequencies do not fit their scale");
  sink->freq = static_cast<uint16_t>(sink->freq + left);
  uint32_t start = 0;
  for (int s = alphabet.first; s <= alphabet.last; ++s) {
    Range& range = ranges_[static_cast<size_t>(s)];
    range.start = static_cast<uint16_t>(start);
    start += range.freq;
  }
  if (use == Use::decode) fill_slots(alphabet);
  total_ = all > kMostTotal ? all / 2 : all;
  pending_ = 0;
}

template <int ScaleBits, uint32_t Observation, int Shift>
void FrequencyModel<ScaleBits, Observation, Shift>::fill_slots(Alphabet alphabet) {
  constexpr uint32_t kStep = 1U << Shift;
  slots_.resize(kScale >> Shift);
  for (int s = alphabet.first; s <= alphabet.last; ++s) {
    const Range range = ranges_[static_cast<size_t>(s)];
    const uint32_t begin = (range.start + kStep - 1) >> Shift, end = (range.start + range.freq + kStep - 1U) >> Shift;
    std::memset(slots_.data() + begin, s, end - begin);
  }
}

template class FrequencyModel<kScaleBits, 16, 0>;
template class FrequencyModel<kFineScaleBits, 64, 6>;

}  // namespace fairway
