// Timings for `fairway bench`: repeated, the median and the spread between the quartiles.
#pragma once

#include <functional>
#include <vector>

namespace fairway::bench {

struct Timing {
  double median = 0;  // seconds
  double best = 0;
  double spread = 0;  // interquartile range over the median
  int samples = 0;
};

// Runs `work` a few times unmeasured, then until `seconds` have passed and at least `least` samples are there.
Timing measure(const std::function<void()>& work, double seconds, int least = 5);

Timing timing_of(std::vector<double> seconds);  // of one run each; at least one

double median(std::vector<double> values);  // the upper one of an even number

// Seconds of one call.
double measure_once(const std::function<void()>& work);

}  // namespace fairway::bench
