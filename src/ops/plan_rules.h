// What the shape rules of several ops share.
#pragma once

#include "tensor/tensor.h"

namespace fairway {

// Another shape of the same type.
inline Spec like(const Tensor& x, Shape shape) { return {shape, x.spec.dtype}; }

}  // namespace fairway
