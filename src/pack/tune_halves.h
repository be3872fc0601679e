// Moves what a quantized model keeps in halves (gains, gates, mixes: a few thousand numbers) so that its predictions come
// nearer to those of the weights it was made of: a few steps of Adam down the KL divergence (pack/divergence.h). The integers
// and their scales stay, and so does the file's size. Scales of rows, moved likewise, gain no more than the bytes they then
// take.
#pragma once

#include "pack/divergence.h"
#include "quant/quantized_model.h"

namespace fairway {

inline constexpr int64_t kTuningSteps = 48;

// Does nothing where the divergence has no rows for a gradient.
void tune_halves(QuantizedModel& model, KlDivergence& divergence);

}  // namespace fairway
