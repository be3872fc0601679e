// A recorded program made ready for a device: element types chosen, memory planned again, gradients that merely pass through
// sharing one place.
#pragma once

#include <map>
#include <set>

#include "autograd/executor.h"

namespace fairway::cuda {

struct Lowered {
  Program program;
  // Arguments that read a parameter's bf16 working copy: (call, index into `in`).
  std::set<std::pair<size_t, size_t>> working;
  std::map<int32_t, int64_t> pitches;  // of values that lie beside others in one block of rows
};

// cuda (spec §2): activations bf16; row statistics, losses, vectors and gradients of parameters float. cuda_f32: all float.
Lowered lower(const Program& program, Backend backend);

}  // namespace fairway::cuda
