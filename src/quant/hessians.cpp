#include "quant/hessians.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace fairway {
namespace {

constexpr double kLeastTrace = 1e-6;

// Empty when the matrix can be used.
std::string problem_of(const Hessian& hessian) {
  double least = 0;
  for (int64_t i = 0; i < hessian.side; ++i) least = std::min(least, hessian.at(i, i));
  for (const double value : hessian.values)
    if (!std::isfinite(value)) return "it holds a value that is not finite";
  if (!(least >= 0)) return fmt::format("its diagonal has a negative entry, {}", least);
  if (!(hessian.trace() > kLeastTrace)) return fmt::format("the sum of its diagonal is {}", hessian.trace());
  return {};
}

}  // namespace

Hessian symmetric(int64_t side, std::vector<double> lower) {
  for (int64_t i = 0; i < side; ++i)
    for (int64_t j = 0; j < i; ++j) lower[static_cast<size_t>(j * side + i)] = lower[static_cast<size_t>(i * side + j)];
  return {side, std::move(lower)};
}

double Hessian::trace() const {
  double sum = 0;
  for (int64_t i = 0; i < side; ++i) sum += at(i, i);
  return sum;
}

std::string hessian_point(const ModelRecipe& model, ParamId bank, int64_t slice) {
  return point_name(row_of(bank).kind_of(slice, model.layers).input, slice % model.layers);
}

void HessianStore::accumulate(std::string_view point, const Tensor& rows) {
  FAIRWAY_ASSERT(!finished_, "a finished store takes no more rows");
  if (!is_hessian_point(point)) return;
  const int64_t side = rows.cols();
  const auto [at, fresh] = hessians_.try_emplace(std::string(point));
  Hessian& hessian = at->second;
  if (fresh) {
    hessian.side = side;
    hessian.values.assign(static_cast<size_t>(side * side), 0.0);
  }
  FAIRWAY_ASSERT(hessian.side == side, "a point's vectors changed their length");
  runner_.run(HessianAccumulate{},
              {make_view(hessian.values.data(), {{side, side}, DType::f64}), rows.reshaped({rows.rows(), side})});
}

void HessianStore::add_sums(std::string_view point, int64_t side, std::span<const double> sums) {
  FAIRWAY_ASSERT(!finished_ && static_cast<int64_t>(sums.size()) == side * side, "sums of another size than their point");
  const auto [at, fresh] = hessians_.try_emplace(std::string(point));
  Hessian& hessian = at->second;
  if (fresh) {
    hessian.side = side;
    hessian.values.assign(sums.begin(), sums.end());
    return;
  }
  FAIRWAY_ASSERT(hessian.side == side, "a point's vectors changed their length");
  runner_.pool().parallel_for(side, [&](int64_t i) {
    for (int64_t k = i * side; k < (i + 1) * side; ++k) hessian.values[static_cast<size_t>(k)] += sums[static_cast<size_t>(k)];
  });
}

void HessianStore::forget(double keep) {
  batches_ *= keep;
  for (auto& [point, hessian] : hessians_)
    for (double& value : hessian.values) value *= keep;
}

void HessianStore::add(const HessianStore& other) {
  FAIRWAY_ASSERT(!finished_ && !other.finished_, "means cannot be added");
  batches_ += other.batches_;
  for (const auto& entry : other.hessians_) {
    const Hessian& from = entry.second;
    const auto [at, fresh] = hessians_.try_emplace(entry.first, from);
    if (fresh) continue;
    double* to = at->second.values.data();
    runner_.pool().parallel_for(from.side, [&](int64_t i) {
      for (int64_t k = i * from.side; k < (i + 1) * from.side; ++k) to[k] += from.values[static_cast<size_t>(k)];
    });
  }
}

std::vector<std::string> HessianStore::finish() {
  FAIRWAY_ASSERT(!finished_, "a store is finished once");
  finished_ = true;
  std::vector<std::string> problems;
  const double factor = batches_ > 0 ? 1 / batches_ : 1;
  for (auto at = hessians_.begin(); at != hessians_.end();) {
    Hessian& hessian = at->second;
    const int64_t n = hessian.side;
    runner_.pool().parallel_for(n, [&](int64_t i) {
      for (int64_t j = 0; j <= i; ++j) hessian.values[static_cast<size_t>(i * n + j)] *= factor;
    });
    runner_.pool().parallel_for((n + 31) / 32, [&](int64_t block) {
      for (int64_t i = 32 * block; i < n; ++i)  // upper rows of this block from the columns below them
        for (int64_t j = 32 * block; j < std::min({n, 32 * block + 32, i}); ++j)
          hessian.values[static_cast<size_t>(j * n + i)] = hessian.values[static_cast<size_t>(i * n + j)];
    });
    const std::string problem = problem_of(hessian);
    if (!problem.empty()) problems.push_back(fmt::format("the Hessian of {} is not used: {}", at->first, problem));
    at = problem.empty() ? std::next(at) : hessians_.erase(at);
  }
  return problems;
}

const Hessian* HessianStore::find(std::string_view point) const {
  const auto at = hessians_.find(point);
  return at == hessians_.end() ? nullptr : &at->second;
}

void HessianStore::put(std::string_view point, int64_t side, std::vector<double> values) {
  FAIRWAY_ASSERT(static_cast<int64_t>(values.size()) == side * side, "a Hessian is square");
  hessians_[std::string(point)] = {side, std::move(values)};
}

}  // namespace fairway
