#include "bench/timing.h"

#include <algorithm>

#include "base/clock.h"

namespace fairway::bench {

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double measure_once(const std::function<void()>& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

Timing measure(const std::function<void()>& work, double seconds, int least) {
  work();
  work();
  std::vector<double> samples;
  for (const Stopwatch all; all.seconds() < seconds || static_cast<int>(samples.size()) < least;) {
    samples.push_back(measure_once(work));
  }
  return timing_of(std::move(samples));
}

Timing timing_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double part) { return samples[static_cast<size_t>(part * static_cast<double>(samples.size() - 1))]; };
  return {at(0.5), samples.front(), (at(0.75) - at(0.25)) / at(0.5), static_cast<int>(samples.size())};
}

}  // namespace fairway::bench
