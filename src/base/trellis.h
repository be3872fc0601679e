// Trellis-coded quantization (Marcellin and Fischer, 1990; with entropy coding Fischer and Wang, 1992). A tensor's weights lie
// on a grid of half the step. Down a column each weight may only be even or only odd, as a state says; its second lowest bit
// moves the state on. So each takes the bits of the whole step, while a search over all paths finds errors nearly those of the
// half. The states are Ungerboeck's for an amplitude, 1982. A column begins anew every so many rows, so that parts of it go at
// once.
#pragma once

#include <cstdint>

namespace fairway {

inline constexpr int kTrellisStates = 32;
inline constexpr int kTrellisFeedback = 18, kTrellisInput = 4;  // parity checks 45 and 10, octal, without their lowest bits
inline constexpr int64_t kTrellisRows = 128;                    // from state 0 on; a start costs about a bit
inline constexpr int kTrellisLevel = 124;                       // |q| is at most this: the coder needs four more symbols

// State 0 is even, state 1 odd, and so on.
constexpr int next_trellis_state(int state, int q) {
  return (state >> 1) ^ ((state & 1) != 0 ? kTrellisFeedback : 0) ^ ((q & 2) != 0 ? kTrellisInput : 0);
}
// The one before it from which a q with or without the second bit led here; that q was odd in the upper half of the states.
constexpr int trellis_state_before(int state, bool second_bit) {
  const int odd = state / (kTrellisStates / 2);
  return ((state ^ (odd != 0 ? kTrellisFeedback : 0) ^ (second_bit ? kTrellisInput : 0)) << 1) | odd;
}

}  // namespace fairway
