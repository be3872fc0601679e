// Comparison of what two runs of one case left behind, written so that NaN fails.
#pragma once

#include <gtest/gtest.h>

#include "ops/guarded.h"
#include "ops/op_case.h"

namespace fairway::ops_test {

// All finite, and within what is allowed; by default a truth of zeros must be met exactly.
::testing::AssertionResult close(const Guarded& candidate, const Guarded& truth, const Allowed& allowed);

::testing::AssertionResult bit_equal(const Guarded& a, const Guarded& b);

inline void expect_close(const std::vector<Guarded>& candidate, const std::vector<Guarded>& truth, const Allowed& allowed,
                         const std::string& what) {
  ASSERT_EQ(candidate.size(), truth.size());
  for (size_t i = 0; i < truth.size(); ++i) EXPECT_TRUE(close(candidate[i], truth[i], allowed)) << what << " " << i;
}

inline void expect_bit_equal(const std::vector<Guarded>& a, const std::vector<Guarded>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < b.size(); ++i) EXPECT_TRUE(bit_equal(a[i], b[i])) << what << " " << i;
}

}  // namespace fairway::ops_test
