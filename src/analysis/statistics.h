// Whether one set of seeds beats another: Welch's t-test, the paired test for equal seeds, and the challenge's record rule
// (scoring spec §7.5).
#pragma once

#include <span>

namespace fairway {

double mean(std::span<const double> values);
double sample_variance(std::span<const double> values);  // divides by n − 1; needs two values

// P(T ≤ t) for Student's t with real degrees of freedom, through the regularised incomplete beta function.
double student_t_cdf(double t, double degrees_of_freedom);

struct TTest {
  double t = 0;
  double df = 0;
  double p = 1;  // two-sided
};

// Both sets need at least two values. Sets without any spread give t = ±∞ and p = 0, or t = 0 and p = 1 when the means agree.
TTest welch_test(std::span<const double> values, std::span<const double> baseline);
TTest paired_test(std::span<const double> values, std::span<const double> baseline);  // value i against baseline i

// One-sided: is `values` lower than `baseline` by more than `margin`?
TTest welch_margin_test(std::span<const double> values, std::span<const double> baseline, double margin);

inline constexpr double kRecordNats = 0.005;  // a record improves the mean by at least this many nats per token …
inline constexpr double kRecordP = 0.01;      // … with p below this
bool is_record(std::span<const double> nats, std::span<const double> baseline_nats);

}  // namespace fairway
