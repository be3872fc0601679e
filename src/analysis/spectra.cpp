#include "analysis/spectra.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "analysis/singular_values.h"
#include "base/error.h"

namespace fairway {
namespace {

Spectrum spectrum_of(const TensorPlan& plan, int64_t layers) {
  const MatrixView w = plan.weight;
  const std::vector<double> s = singular_values({w.data, static_cast<size_t>(w.count())}, w.rows, w.cols);
  double squares = 0;
  for (const double value : s) squares += value * value;
  const auto whole = static_cast<double>(s.size());
  Spectrum out{.name = plan.name(), .role = plan.role, .layer = layer_of(plan, layers), .rows = w.rows, .cols = w.cols};
  out.rank95 = rank_holding(s, 0.95);
  out.rank99 = rank_holding(s, 0.99);
  out.utilization = static_cast<double>(out.rank99) / whole;
  out.largest = s.front();
  out.least = s.back();
  out.stable_rank = out.largest > 0 ? squares / (out.largest * out.largest) : 0;
  out.condition = out.least > 0 ? out.largest / out.least : std::numeric_limits<double>::infinity();
  return out;
}

RoleSpectrum mean_of(QuantRole role, const std::vector<Spectrum>& all) {
  RoleSpectrum mean{.role = role};
  for (const Spectrum& s : all) {
    if (s.role != role) continue;
    ++mean.matrices;
    mean.utilization += s.utilization;
    mean.utilization95 += static_cast<double>(s.rank95) / static_cast<double>(std::min(s.rows, s.cols));
    mean.stable_rank += s.stable_rank;
    mean.condition += s.condition;
  }
  for (double* value : {&mean.utilization, &mean.utilization95, &mean.stable_rank, &mean.condition})
    *value /= static_cast<double>(std::max<int64_t>(mean.matrices, 1));
  return mean;
}

}  // namespace

int64_t rank_holding(const std::vector<double>& singular, double share) {
  double total = 0, sum = 0;
  for (const double value : singular) total += value * value;
  if (total == 0) return 0;
  int64_t below = 0;
  for (const double value : singular) {
    sum += value * value;
    below += sum < share * total;
  }
  return std::min<int64_t>(below + 1, static_cast<int64_t>(singular.size()));
}

const char* role_name(QuantRole role) {
  switch (role) {
    case QuantRole::q: return "Q";
    case QuantRole::k: return "K";
    case QuantRole::v: return "V";
    case QuantRole::o: return "O";
    case QuantRole::up: return "up";
    case QuantRole::down: return "down";
    default: break;
  }
  FAIRWAY_ASSERT(false, "only the layers' matrices have such a name");
}

int64_t layer_of(const TensorPlan& plan, int64_t layers) { return plan.slice % layers; }

SpectraReport measure_spectra(const ParamStore& weights, const Recipe& recipe, ThreadPool& pool,
                              const AnalysisProgress& progress) {
  std::vector<TensorPlan> plans = tensor_plans(weights, recipe);
  std::erase_if(plans, [](const TensorPlan& plan) { return !plan.matrix(); });
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) { return a.role < b.role; });
  SpectraReport report;
  report.matrices.resize(plans.size());
  const auto total = static_cast<int64_t>(plans.size()), batch = static_cast<int64_t>(pool.threads());
  for (int64_t begin = 0; begin < total; begin += batch) {  // in small loops, so that the progress can be told
    const int64_t count = std::min(batch, total - begin);
    pool.parallel_for(count, [&](int64_t i) {
      const auto at = static_cast<size_t>(begin + i);
      report.matrices[at] = spectrum_of(plans[at], recipe.model.layers);
    });
    if (progress) progress(begin + count, total);
  }
  for (const QuantRole role : {QuantRole::q, QuantRole::k, QuantRole::v, QuantRole::o, QuantRole::up, QuantRole::down})
    report.roles.push_back(mean_of(role, report.matrices));
  return report;
}

}  // namespace fairway
