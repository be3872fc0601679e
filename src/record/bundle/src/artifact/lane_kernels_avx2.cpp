// A record's weights are decoded by the portable kernels, which give the same numbers and are less to count.
#include "artifact/lane_kernels.h"

namespace fairway {

const LaneKernels avx2_lanes = generic_lanes;

}  // namespace fairway
