// The weights a run ends with, under the interchange names.
#pragma once

#include <filesystem>

#include "train/checkpoint.h"
#include "train/trainer.h"

namespace fairway {

void save_averaged(const std::filesystem::path& path, Trainer& trainer, ModelStage stage, int64_t step, const RunIdentity& run);

// WorkError naming the step when a weight is NaN or infinite, so that a spoilt state never replaces a good checkpoint.
void require_finite(const Tensor& flat, int64_t step);

}  // namespace fairway
