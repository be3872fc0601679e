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

// Difference of means and its standard error; df by Welch and Satterthwaite.
struct Difference {
  double value, error, df;
};

Difference difference_of(std::span<const double> x, std::span<const double> y) {
  const auto n = static_cast<double>(x.size()), m = static_cast<double>(y.size());
  const double a = sample_variance(x) / n, b = sample_variance(y) / m;
  const double df = a + b > 0 ? (a + b) * (a + b) / (a * a / (n - 1) + b * b / (m - 1)) : n + m - 2;
  return {mean(x) - mean(y), std::sqrt(a + b), df};
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

TTest welch_test(std::span<const double> values, std::span<const double> baseline) {
  const Difference d = difference_of(values, baseline);
  const double t = ratio(d.value, d.error);
  return {t, d.df, p_of(t, d.df)};
}

TTest welch_margin_test(std::span<const double> values, std::span<const double> baseline, double margin) {
  const Difference d = difference_of(values, baseline);
  const double t = ratio(-d.value - margin, d.error);
  const double tail = 0.5 * p_of(t, d.df);
  return {t, d.df, t > 0 ? tail : 1 - tail};
}

TTest paired_test(std::span<const double> values, std::span<const double> baseline) {
  FAIRWAY_ASSERT(values.size() == baseline.size(), "a paired test of sets of different sizes");
  std::vector<double> differences;
  for (size_t i = 0; i < values.size(); ++i) differences.push_back(values[i] - baseline[i]);
  const auto n = static_cast<double>(differences.size());
  const double t = ratio(mean(differences), std::sqrt(sample_variance(differences) / n));
  return {t, n - 1, p_of(t, n - 1)};
}

bool is_record(std::span<const double> nats, std::span<const double> baseline_nats) {
  return mean(baseline_nats) - mean(nats) >= kRecordNats && welch_test(nats, baseline_nats).p < kRecordP;
}

}  // namespace fairway
