// What a bf16 MLP keeps for its gradient besides `post`: one bit for each hidden unit, set where pre was negative. With it the
// slope is 2·√post or −√post, nearer to the truth than a stored bf16 pre. It lies where act_grad would, and its order is the
// kernels' own business.
#pragma once

#include "tensor/tensor.h"

namespace fairway::cuda {

inline Spec signs_spec(const Spec& post) {
  constexpr int64_t kRows = 128;  // of a kernel's tile, which it fills whole
  return {{(post.shape.rows() + kRows - 1) / kRows * kRows, (post.shape.last() + 7) / 8}, DType::u8};
}

}  // namespace fairway::cuda
