#include "analysis/statistics.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"

namespace fairway {
namespace {

constexpr double kTiny = 1e-300;  // keeps Lentz's quotients away from zero

// Continued fraction of the incomplete beta function, by Lentz's method; converges fast for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
  const auto guard = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 / guard(1 + term * d);
      c = guard(1 + term / c);
      change = c * d;
      result *= change;
    }
    if (std::abs(change - 1) < 1e-16) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

// P(|T| ≥ |t|), exact also where the tail is far below one ulp of 1.
double two_sided_p(double t, double df) { return incomplete_beta(df / 2, 0.5, df / (df + t * t)); }

double ratio(double difference, double error) {
  if (error > 0) return difference / error;
  return difference == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), difference);
}

double p_of(double t, double df) {
  if (std::isinf(t)) return 0;
  return t == 0 ? 1 : two_sided_p(t, df);
}

}  // namespace

double mean(std::span<const double> values) {
  FAIRWAY_ASSERT(!values.empty(), "a mean of no values");
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double sample_variance(std::span<const double> values) {
  FAIRWAY_ASSERT(values.size() >= 2, "a variance of fewer than two values");
  const double centre = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - centre) * (value - centre);
  return sum / static_cast<double>(values.size() - 1);
}

double student_t_cdf(double t, double degrees_of_freedom) {
  const double tail = 0.5 * p_of(t, degrees_of_freedom);
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  FAIRWAY_ASSERT(probability > 0 && probability < 1, "a quantile of a probability outside of (0, 1)");
  if (probability < 0.5) return -student_t_quantile(1 - probability, degrees_of_freedom);
  double low = 0, high = 1;
  while (high < 1e300 && student_t_cdf(high, degrees_of_freedom) < probability) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (student_t_cdf(middle, degrees_of_freedom) < probability ? low : high) = middle;
  }
  return high;
}

Difference welch_difference(std::span<const double> values, std::span<const double> baseline) {
  const auto n = static_cast<double>(values.size()), m = static_cast<double>(baseline.size());
  const double a = sample_variance(values) / n, b = sample_variance(baseline) / m;
  const double df = a + b > 0 ? (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1)) : n + m - 2;
  return {mean(values) - mean(baseline), std::sqrt(a + b), df};
}

Difference paired_difference(std::span<const double> values, std::span<const double> baseline) {
  FAIRWAY_ASSERT(values.size() == baseline.size(), "pairs of sets of different sizes");
  std::vector<double> differences;
  for (size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - baseline[i]);
  const auto n = static_cast<double>(differences.size());
  return {mean(differences), std::sqrt(sample_variance(differences) / n), n - 1};
}

Interval interval_of(const Difference& difference) {
  const double half = student_t_quantile(0.5 + kConfidence / 2, difference.df) * difference.error;
  return {difference.value - half, difference.value + half};
}

TTest t_test(const Difference& difference) {
  const double t = ratio(difference.value, difference.error);
  return {t, difference.df, p_of(t, difference.df)};
}

TTest margin_test(const Difference& difference, double margin) {
  const double t = ratio(-difference.value - margin, difference.error);
  const double tail = 0.5 * p_of(t, difference.df);
  return {t, difference.df, t > 0 ? tail : 1 - tail};
}

bool is_record(const Difference& nats) { return -nats.value >= kRecordNats && t_test(nats).p < kRecordP; }

}  // namespace fairway
