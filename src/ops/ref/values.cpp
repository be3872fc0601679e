#include "ops/ref/values.h"

#include <cmath>

namespace fairway::ref {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace fairway::ref
