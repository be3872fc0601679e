#include "analysis/document_bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/rng.h"

namespace fairway {
namespace {

constexpr double kPower = 0.8;

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// Bits of each document, mean over the runs of a side.
std::vector<double> mean_over_runs(const std::vector<std::vector<double>>& runs) {
  std::vector<double> out(runs.front().size());
  for (const std::vector<double>& run : runs)
    for (size_t d = 0; d < out.size(); ++d) out[d] += run[d] / static_cast<double>(runs.size());
  return out;
}

std::vector<double> bits_per_byte(const std::vector<std::vector<double>>& runs, double bytes) {
  std::vector<double> out;
  for (const std::vector<double>& run : runs) out.push_back(sum_of(run) / bytes);
  return out;
}

// Σ bits / Σ bytes of as many documents, drawn with replacement; a draw without any byte is made again.
double redrawn(std::span<const double> bits, std::span<const double> bytes, Rng& rng) {
  for (;;) {
    double numerator = 0, denominator = 0;
    for (size_t i = 0; i < bits.size(); ++i) {
      const uint64_t d = rng.below(bits.size());
      numerator += bits[d];
      denominator += bytes[d];
    }
    if (denominator > 0) return numerator / denominator;
  }
}

std::vector<double> sorted_draws(std::span<const double> bits, std::span<const double> bytes, const Resampling& resampling,
                                 ThreadPool& pool) {
  std::vector<double> out(static_cast<size_t>(resampling.draws));
  pool.parallel_for(resampling.draws, [&](int64_t draw) {
    Rng rng(resampling.seed, static_cast<uint64_t>(draw));
    out[static_cast<size_t>(draw)] = redrawn(bits, bytes, rng);
  });
  std::sort(out.begin(), out.end());
  return out;
}

// Percentiles moved outwards to what Student's t asks of so many documents (the expanded percentile interval of Hesterberg,
// The American Statistician 69, 2015): plain percentiles are too narrow for few documents.
Interval percentiles(const std::vector<double>& draws, double documents) {
  const double t = student_t_quantile(0.5 + kConfidence / 2, documents - 1);
  const double tail = normal_cdf(-t * std::sqrt(documents / (documents - 1)));
  const auto last = static_cast<double>(draws.size() - 1);
  const auto at = [&](double share) { return draws[static_cast<size_t>(std::lround(share * last))]; };
  return {at(tail), at(1 - tail)};
}

Statement statement_of(const Difference& difference, const Interval& interval) {
  const double reach = student_t_quantile(0.5 + kConfidence / 2, difference.df) + student_t_quantile(kPower, difference.df);
  return {difference, interval, t_test(difference).p, reach * difference.error};
}

// Spread of the seeds as the error of the difference, and the variances of one run of each side.
struct SeedSpread {
  Difference difference;
  double runs = 0, baseline = 0;  // of a pair: the first alone
  bool borrowed = false;
};

std::optional<SeedSpread> seed_spread(const DocumentSample& sample, double bytes) {
  const std::vector<double> x = bits_per_byte(sample.runs, bytes), y = bits_per_byte(sample.baseline, bytes);
  if (x.size() < 2 && y.size() < 2) return std::nullopt;
  if (sample.paired_seeds) {
    const Difference d = paired_difference(x, y);
    return SeedSpread{d, d.error * d.error * static_cast<double>(x.size())};
  }
  if (x.size() >= 2 && y.size() >= 2) return SeedSpread{welch_difference(x, y), sample_variance(x), sample_variance(y)};
  const std::vector<double>& several = x.size() < 2 ? y : x;
  const double variance = sample_variance(several), k = static_cast<double>(several.size());
  return SeedSpread{{mean(x) - mean(y), std::sqrt(variance / k + variance), k - 1}, variance, variance, true};
}

// Two errors that do not depend on each other. The square of the interval's half is the sum of the squares of what each of them
// asks for alone, and the degrees of freedom are those with which Student's t has that half. With Satterthwaite's there are
// too many false alarms, 6 % with two seeds a side and 12 % with two against one: seeds that happen to lie close together leave
// an error of the documents alone, and their many degrees of freedom.
Difference joined(const Difference& seeds, const Difference& documents) {
  const double a = seeds.error * seeds.error, b = documents.error * documents.error, error = std::sqrt(a + b);
  if (!(a > 0)) return {documents.value, error, documents.df};
  const auto reach = [](double df) { return student_t_quantile(0.5 + kConfidence / 2, df); };
  const double half = std::hypot(seeds.error * reach(seeds.df), documents.error * reach(documents.df));
  double low = std::min(seeds.df, documents.df), high = std::max(seeds.df, documents.df);  // more of them, a shorter reach
  for (int i = 0; i < 50; ++i) {
    const double middle = low + (high - low) / 2;
    (reach(middle) * error > half ? low : high) = middle;
  }
  return {documents.value, error, low};
}

std::optional<int64_t> seeds_for_record(const SeedSpread& spread, bool paired) {
  const double a = spread.runs, b = spread.baseline;
  const auto reached = [&](int64_t seeds) {
    const auto n = static_cast<double>(seeds);
    const double df = paired || a + b == 0 ? n - 1 : (a + b) * (a + b) * (n - 1) / (a * a + b * b);
    return t_test({spread.difference.value, std::sqrt((a + b) / n), df}).p < kRecordP;
  };
  int64_t low = 1, high = 2;  // more seeds never raise p: too few, and enough
  while (high < kMostSeeds && !reached(high)) low = high, high = std::min(2 * high, kMostSeeds);
  if (!reached(high)) return std::nullopt;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (reached(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace

DocumentTest test_documents(const DocumentSample& sample, const Resampling& resampling, ThreadPool& pool) {
  FAIRWAY_ASSERT(sample.bytes.size() >= 2 && !sample.runs.empty() && !sample.baseline.empty(), "too little to compare");
  FAIRWAY_ASSERT(resampling.draws >= 2, "a bootstrap needs draws");
  const double bytes = sum_of(sample.bytes), documents = static_cast<double>(sample.bytes.size());
  std::vector<double> bits = mean_over_runs(sample.runs);
  const std::vector<double> baseline = mean_over_runs(sample.baseline);
  for (size_t d = 0; d < bits.size(); ++d) bits[d] -= baseline[d];

  const std::vector<double> draws = sorted_draws(bits, sample.bytes, resampling, pool);
  const Difference over_documents{sum_of(bits) / bytes, std::sqrt(sample_variance(draws)), documents - 1};
  DocumentTest out{.models = statement_of(over_documents, percentiles(draws, documents))};
  if (const auto spread = seed_spread(sample, bytes)) {
    const Difference both = joined(spread->difference, over_documents);
    out.recipes = statement_of(both, interval_of(both));
    out.seed_error = spread->difference.error;
    out.borrowed_spread = spread->borrowed;
    out.seeds_needed = seeds_for_record(*spread, sample.paired_seeds);
  }
  return out;
}

}  // namespace fairway
