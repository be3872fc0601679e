#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const Fill& op, const Forward<Fill>& f) {
  with_dtype(f.in.x, [&]<class T>() { std::fill_n(f.in.x.as<T>(), f.in.x.numel(), static_cast<T>(op.value)); });
}

}  // namespace fairway::ref
