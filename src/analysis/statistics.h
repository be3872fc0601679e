// Whether one set of seeds beats another: Welch's t-test, the paired test for equal seeds, and the challenge's record rule
// (scoring spec §7.5).
#pragma once

#include <span>

namespace fairway {

double mean(std::span<const double> values);
double sample_variance(std::span<const double> values);  // divides by n − 1; needs two values

// P(T ≤ t) for Student's t with real degrees of freedom, through the regularised incomplete beta function.
double student_t_cdf(double t, double degrees_of_freedom);

double student_t_quantile(double probability, double degrees_of_freedom);  // t with P(T ≤ t) = probability, in (0, 1)

// Difference of two means, its standard error, and the degrees of freedom of that error.
struct Difference {
  double value = 0, error = 0, df = 1;
};
// Both sets need at least two values.
Difference welch_difference(std::span<const double> values, std::span<const double> baseline);   // df by Satterthwaite
Difference paired_difference(std::span<const double> values, std::span<const double> baseline);  // value i minus baseline i

inline constexpr double kConfidence = 0.95;  // of every interval
struct Interval {
  double low = 0, high = 0;
};
Interval interval_of(const Difference& difference);

struct TTest {
  double t = 0;
  double df = 0;
  double p = 1;
};
// Two-sided: is there a difference? Without any spread t = ±∞ and p = 0, or t = 0 and p = 1 when the means agree.
TTest t_test(const Difference& difference);
// One-sided: is the difference below −margin, so that the values are better by more than it?
TTest margin_test(const Difference& difference, double margin);

inline constexpr double kRecordNats = 0.005;  // a record improves the mean by at least this many nats per token …
inline constexpr double kRecordP = 0.01;      // … with p below this
bool is_record(const Difference& nats);

}  // namespace fairway
