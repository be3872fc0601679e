// What levels cost beside errors when a trellis (base/trellis.h) is searched.
#pragma once

#include <span>
#include <vector>

#include "quant/grid.h"

namespace fairway {

// (cols, levels + 1): bits that |q| = 0, 1, … are expected to take in each column, times the squared error that a bit is worth;
// in squares of a row's step, which is that of the grid. Columns are taken as Gaussian, each as wide as it is.
std::vector<float> trellis_rates(MatrixView w, std::span<const float> steps, int levels, ThreadPool& pool);

}  // namespace fairway
