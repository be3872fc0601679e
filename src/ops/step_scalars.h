// Numbers that change from step to step, kept in one f64 tensor that the host fills once per step, so that a recorded program
// can be replayed without being rebuilt.
#pragma once

#include <cstdint>

namespace fairway {

enum class StepScalar : uint8_t { learning_rate_scale, momentum, adam_step, swa_weight };
inline constexpr int64_t kStepScalars = 8;  // slots in the tensor

}  // namespace fairway
