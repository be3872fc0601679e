// One product on the device, as the ops ask cuBLASLt for it: timed, with its result handed back to be checked. For
// `fairway bench ops`.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/product_layout.h"

namespace fairway::cuda {

struct ProductRequest {
  ProductLayout layout = ProductLayout::nt;
  int64_t m = 0, n = 0, k = 0;
  bool bf16_in = false, bf16_out = false;  // else float; sums are float either way
  const float* a = nullptr;                // on the host, dense; values that bf16 holds where it is asked for
  const float* b = nullptr;
};
struct TimedProduct {
  std::vector<float> result;    // (m, n)
  std::vector<double> seconds;  // of each run, by the device's clock
};
// Runs until `seconds` have passed and at least `least` runs are there, after a few that are not timed.
TimedProduct time_product(const ProductRequest& request, double seconds, int least);

}  // namespace fairway::cuda
