// Measures the moments that the bit allocator weighs errors by (quant/tensor_moments.h), from the gradients of a few short
// sequences. The mean gradient is taken out: a model need not lie in a minimum.
#pragma once

#include <span>

#include "pack/calibrate.h"
#include "quant/tensor_moments.h"

namespace fairway {

inline constexpr int64_t kMomentSequences = 64, kMomentTokens = 256;  // of each, where rows are long enough

// text: sequences of length + 1 tokens, at least two of them; each token is predicted from those before it. Every rank does all
// of it.
TensorMoments gradient_moments(const CalibrationModel& model, std::span<const int32_t> text, int64_t length);

}  // namespace fairway
