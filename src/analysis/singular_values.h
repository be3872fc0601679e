// Singular values of a matrix: Householder reflections bring it to two diagonals (Golub and Kahan), whose singular values
// bisection finds by counting signs (Sturm). Double throughout; errors are a few ulps of the largest value. The same bits
// always.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fairway {

// values: (rows, cols), dense, finite. min(rows, cols) values, descending.
std::vector<double> singular_values(std::span<const float> values, int64_t rows, int64_t cols);

}  // namespace fairway
