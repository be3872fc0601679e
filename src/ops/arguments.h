// The declared arguments of any op, in the order of the structs' members.
#pragma once

#include <span>

#include "ops/all_ops.h"

namespace fairway {

struct Arguments {
  std::span<const Arg> in, out, saved;
};

Arguments arguments_of(const AnyOp&);

// Whether the gradient of input `index` is that of the result; `present(i)` tells whether a call has input i.
template <class Present>
bool passes_gradient(const Arguments& all, size_t index, Present&& present) {
  if (!all.in[index].passes_gradient) return false;
  for (size_t i = 0; i < all.in.size(); ++i)
    if (all.in[i].stops_gradients && present(i)) return false;
  return true;
}

}  // namespace fairway
