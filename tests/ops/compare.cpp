#include "ops/compare.h"

#include <cmath>

namespace fairway::ops_test {

::testing::AssertionResult close(const Guarded& candidate, const Guarded& truth, const Allowed& allowed) {
  const std::vector<double> a = candidate.values(), b = truth.values();
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " elements, expected " << b.size();
  double error = 0, power = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return ::testing::AssertionFailure() << "element " << i << " is " << a[i] << ", expected " << b[i];
    error += (a[i] - b[i]) * (a[i] - b[i]);
    power += b[i] * b[i];
  }
  const double limit = allowed.nmse * power + static_cast<double>(a.size()) * allowed.noise * allowed.noise;
  if (!(error <= limit)) return ::testing::AssertionFailure() << "NMSE " << error / power << " > " << allowed.nmse;
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult bit_equal(const Guarded& a, const Guarded& b) {
  if (a.bytes() != b.bytes()) return ::testing::AssertionFailure() << "bits differ";
  return ::testing::AssertionSuccess();
}

}  // namespace fairway::ops_test
