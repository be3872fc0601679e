#include "ops/ref/values.h"

#include "base/plain_math.h"

namespace fairway::ref {

// Not by the library's exp: what decodes a compressed text must have the same bits everywhere (textcode/exact_executor.h).
double sigmoid(double x) { return 1 / (1 + plain_exp(-x)); }

}  // namespace fairway::ref
