// Stands in for sm90_mlp.cu where CUTLASS's headers are absent.
#include "ops/cuda/mlp_fused.h"

namespace fairway::cuda {

bool fused_up(Scratch&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { return false; }
bool fused_down_gradient(Scratch&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) { return false; }

}  // namespace fairway::cuda
