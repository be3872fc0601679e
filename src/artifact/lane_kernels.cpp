#include "artifact/lane_kernels.h"

#include <atomic>
#include <cstring>

#include "base/trellis.h"

namespace fairway {
namespace {

constexpr uint32_t kFloor = 1U << 16;

bool decode(LaneStates& states, LaneGroup& group) {
  bool escaped = false;
  for (int j = 0; j < group.count; ++j) {
    for (int r = 0; r < group.rows; ++r) {
      int32_t index = group.columns[j] + group.row_class[r];
      index = index < 0 ? 0 : index > group.last ? group.last : index;
      if (group.trellis) index = 2 * index + (group.trellis_state[r] & 1);
      uint32_t x = states.x[r];
      const uint32_t entry = group.entries[static_cast<uint32_t>(index) << 11 | (x & 2047)];
      x = (entry >> 8 & 0xFFF) * (x >> 11) + (entry >> 20);
      if (x < kFloor) {
        uint16_t word = 0;
        if (states.end - states.place >= 2) {
          std::memcpy(&word, states.place, 2);
          states.place += 2;
        } else {
          states.ran_out = true;
        }
        x = x << 16 | word;
      }
      states.x[r] = x;
      group.tile[j][r] = static_cast<int8_t>(entry);
      escaped |= group.tile[j][r] < (group.trellis ? -kTrellisLevel : -127);
      if (group.trellis) group.trellis_state[r] = next_trellis_state(group.trellis_state[r], group.tile[j][r]);
    }
  }
  return escaped;
}

void finish(LaneGroup& group, const LaneRowLimits& next, int8_t* q, int64_t stride) {
  for (int r = 0; r < group.rows; ++r) {
    for (int j = 0; j < group.count; ++j) q[r * stride + j] = group.tile[j][r];
    if (next.sign == 0) continue;
    int32_t& sum = group.squares[r];
    for (int j = 0; j < group.count; ++j) sum += group.tile[j][r] * group.tile[j][r];
    const int32_t distance = next.sign * (sum - next.expected);
    int32_t index = -6;
    for (int k = 0; k < 12; ++k) index += distance >= next.limits[k] ? 1 : 0;
    group.row_class[r] = index;
  }
}

std::atomic<const LaneKernels*> chosen{nullptr};

}  // namespace

const LaneKernels generic_lanes{decode, finish};

const LaneKernels& lane_kernels() {
  const LaneKernels* lanes = chosen.load(std::memory_order_acquire);
  if (lanes == nullptr) {
    lanes = &generic_lanes;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) lanes = &avx2_lanes;
#endif
    chosen.store(lanes, std::memory_order_release);
  }
  return *lanes;
}

void use_lane_kernels(const LaneKernels& lanes) { chosen.store(&lanes, std::memory_order_release); }

}  // namespace fairway
