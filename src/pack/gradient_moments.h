// Measures the moments that the bit allocator weighs errors by (quant/tensor_moments.h), from the gradients of a few short
// sequences. The mean gradient is taken out: a model need not lie in a minimum.
#pragma once

#include <span>

#include "pack/calibrate.h"
#include "quant/tensor_moments.h"

namespace fairway {

inline constexpr int64_t kMomentTokens = 256;  // of a sequence, where rows are long enough
// What rows say of each other takes more sequences than steps by row: 128 left 2 to 5 % less divergence than 64 on the demo.
constexpr int64_t moment_sequences(const QuantRecipe& quant) { return quant.two_sided ? 128 : 64; }

// text: sequences of length + 1 tokens, at least two of them; each token is predicted from those before it. inputs: for moments
// of the outputs (quant/output_factor.h); null: without them. Every rank does all of it.
TensorMoments gradient_moments(const CalibrationModel& model, std::span<const int32_t> text, int64_t length,
                               const HessianStore* inputs = nullptr);

}  // namespace fairway
