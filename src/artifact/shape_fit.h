// The encoder's choice of a shape: least cost of a histogram.
#pragma once

#include "artifact/shaped_models.h"

namespace fairway {

using Histogram = std::array<int64_t, 256>;  // by symbol

// Mean and spread; the strength is left as it is.
WeightShape fitted_shape(const Histogram& histogram, WeightShape shape);

}  // namespace fairway
