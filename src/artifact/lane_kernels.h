// The inner loops of decoding lanes, for the machine at hand. Nothing but plain pointers: a file of its own is compiled for
// AVX2, and no function that others share may come from there.
#pragma once

#include <cstdint>

namespace fairway {

struct LaneStates {
  uint32_t x[16];
  const char *place, *end;  // words of 16 bits
  bool ran_out = false;
};

// Sixteen columns of sixteen rows, or fewer at an edge. Under a trellis the lanes are columns: what is said of rows here then
// holds for columns, and the other way round.
struct LaneGroup {
  const uint32_t* entries;  // (classes, 2^11)
  const int32_t* columns;   // class of each column
  int32_t last;             // class
  int count, rows;
  alignas(64) int32_t row_class[16];
  alignas(64) int32_t squares[16];  // of each row so far; not under a trellis
  alignas(64) int8_t tile[16][16];  // [column][row]
  bool trellis = false;
  alignas(64) int32_t trellis_state[16] = {};  // of each lane; tables are those of even q and of odd q in turn
};

struct LaneRowLimits {
  int sign;
  int32_t expected;
  const int32_t* limits;  // 12
};

struct LaneKernels {
  bool (*decode)(LaneStates& states, LaneGroup& group);  // fills the tile; whether an escape is in it
  // The tile into rows of q, its squares to the sums and, for what comes after it, the rows' classes.
  void (*finish)(LaneGroup& group, const LaneRowLimits& next, int8_t* q, int64_t stride);
};

extern const LaneKernels generic_lanes, avx2_lanes;
const LaneKernels& lane_kernels();                // the best that the machine has
void use_lane_kernels(const LaneKernels& lanes);  // for tests

}  // namespace fairway
