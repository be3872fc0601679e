// What training takes of a machine's memory, known before it starts: the programs are recorded and planned as they would run.
#pragma once

#include "autograd/executor.h"
#include "recipe/recipe.h"

namespace fairway::pipeline {

// On one rank, with this many tokens of a micro-batch: activations of the largest program as the backend plans them (bf16 on a
// device, which keeps no logits and shares passed gradients), what there is of every weight, and what a device's libraries and
// the scratch of its kernels take.
double training_bytes(const Recipe& recipe, int64_t micro_batch, Backend backend);

}  // namespace fairway::pipeline
