// exp, log, sin and cos from additions, products and exact scalings alone: the same bits on every machine, whatever its
// mathematics library. Errors are a few units of the last place of a double. The project compiles without contraction
// (cmake/FairwayTargets.cmake), which these functions rely on.
#pragma once

#include <array>
#include <cmath>

namespace fairway {

inline constexpr auto kInverseFactorials = [] {
  std::array<double, 15> out{1.0};
  double factorial = 1;  // exact up to 18!
  for (size_t n = 1; n < out.size(); ++n) out[n] = 1 / (factorial *= static_cast<double>(n));
  return out;
}();

inline double plain_exp(double x) {
  if (!(x > -745.2)) return x <= -745.2 ? 0.0 : x;  // NaN stays
  if (x > 709.79) return HUGE_VAL;
  constexpr double kHigh = 6.93147180369123816490e-01, kLow = 1.90821492927058770002e-10, kInverse = 1.44269504088896338700;
  const double whole = std::floor(x * kInverse + 0.5);
  const double rest = (x - whole * kHigh) - whole * kLow;  // at most 0.3466; the first product is exact
  double sum = 0;
  for (size_t n = kInverseFactorials.size(); n-- > 0;) sum = sum * rest + kInverseFactorials[n];
  return std::ldexp(sum, static_cast<int>(whole));
}

inline double plain_log(double x) {  // of a positive, finite number
  int exponent = 0;
  double part = std::frexp(x, &exponent);  // in [0.5, 1)
  if (part < 0.70710678118654752440) part *= 2, --exponent;
  const double s = (part - 1) / (part + 1), square = s * s;  // |s| <= 0.1716
  double sum = 0;
  for (int n = 25; n >= 1; n -= 2) sum = sum * square + 1.0 / n;
  constexpr double kHigh = 6.93147180369123816490e-01, kLow = 1.90821492927058770002e-10;
  return exponent * kHigh + (2 * s * sum + exponent * kLow);
}

struct SineCosine {
  double sine, cosine;
};
inline SineCosine plain_sine_cosine(double x) {            // |x| up to 2^20
  constexpr double kQuarter = 6.36619772367581382433e-01;  // 2/π
  constexpr double kFirst = 1.57079632673412561417, kSecond = 6.07710050630396597660e-11, kThird = 2.02226624879595063154e-21;
  const double whole = std::floor(x * kQuarter + 0.5);
  const double rest = ((x - whole * kFirst) - whole * kSecond) - whole * kThird, square = rest * rest;
  double sine = 1, cosine = 1;
  for (int n = 20; n >= 2; n -= 2) {
    sine = 1 - sine * square / (n * (n + 1));
    cosine = 1 - cosine * square / (n * (n - 1));
  }
  sine *= rest;
  switch (static_cast<long>(whole) & 3) {
    case 0: return {sine, cosine};
    case 1: return {cosine, -sine};
    case 2: return {-sine, -cosine};
    default: return {-cosine, sine};
  }
}

}  // namespace fairway
