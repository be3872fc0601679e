#include "score/distribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace fairway {
namespace {

// Logits of the given probabilities.
struct Row {
  explicit Row(const std::vector<double>& probabilities, double lift = 2.5) {
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p) + lift));
    lse = static_cast<float>(lift);
  }
  Distribution distribution(Tilt tilt = {}) const { return Distribution{logits, lse, {}}.tilted(tilt); }
  std::vector<float> logits;
  float lse;
};

double sum_of(const std::vector<float>& logs) {
  double sum = 0;
  for (const float value : logs) sum += std::exp(static_cast<double>(value));
  return sum;
}

TEST(Distribution, TiltOfTheSpecsExample) {  // scoring spec §11.6
  const Row row({0.2, 0.5, 0.3});
  const Tilt tilt{{0, 0.75f}};
  std::vector<float> values;
  const double hit = static_cast<double>(finish(row.distribution(tilt), -std::log(0.2), 0, &values).nll);
  EXPECT_NEAR(hit + std::log(0.2), -0.5483661, 1e-6);
  EXPECT_NEAR(std::exp(static_cast<double>(values[0])), 0.3460847, 1e-6);
  EXPECT_NEAR(std::exp(static_cast<double>(values[1])), 0.5 / 1.2234000, 1e-6);
  EXPECT_NEAR(sum_of(values), 1, 1e-6);
  const double miss = static_cast<double>(finish(row.distribution(tilt), -std::log(0.5), 1).nll);
  EXPECT_NEAR(miss + std::log(0.5), 0.2016339, 1e-6);
}

TEST(Distribution, TheDigestIsThatOfTheLogProbabilitiesAndNotOfTheTarget) {
  const Row row({0.1, 0.2, 0.3, 0.15, 0.05, 0.05, 0.05, 0.05, 0.05});
  for (const Tilt tilt : {Tilt{}, Tilt{{3, 0.4f}}}) {
    std::vector<float> values;
    const TargetScore first = finish(row.distribution(tilt), 1.0, 0, &values);
    EXPECT_EQ(first.digest, digest_of(values));
    EXPECT_EQ(first.digest, finish(row.distribution(tilt), 2.0, 5).digest);
  }
  EXPECT_NE(finish(row.distribution(), 1, 0).digest, finish(row.distribution({{3, 0.4f}}), 1, 0).digest);
}

TEST(Distribution, AChangeOfOneUlpAnywhereChangesTheDigest) {
  Rng rng(1);
  for (const size_t count : {1U, 7U, 8U, 9U, 61U, 1024U}) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(-5 * rng.uniform01() - 0.1);
    const uint64_t digest = digest_of(values);
    for (size_t i = 0; i < count; ++i) {
      const float old = values[i];
      values[i] = std::nextafter(old, 0.0f);
      EXPECT_NE(digest_of(values), digest) << i << " of " << count;
      values[i] = old;
    }
    EXPECT_EQ(digest_of(values), digest);
  }
}

}  // namespace
}  // namespace fairway
