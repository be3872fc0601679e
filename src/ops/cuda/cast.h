// Copies between float and bf16: working weights of a program, and values that the host wants to see.
#pragma once

#include "ops/cuda/context.h"

namespace fairway::cuda {

void cast_to_bf16(Context& context, const void* floats, void* halves, int64_t count);  // 16-byte aligned, on the device
void cast_to_float(Context& context, const void* halves, void* floats, int64_t count);
void softcap(Context& context, void* floats, int64_t count, float cap);  // cap·tanh(x/cap), in place

}  // namespace fairway::cuda
