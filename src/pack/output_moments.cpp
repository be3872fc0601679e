#include "pack/output_moments.h"

#include <cmath>

#include "base/rng.h"

namespace fairway {
namespace {

constexpr int64_t kDirections = 128;  // of wider inputs so many random mixtures are enough
constexpr double kDamping = 0.1;      // of the mean diagonal

// Uᵀ·Ω, with the identity for Ω or, of more inputs than directions, with signs by chance.
std::vector<float> mixed_by(const std::vector<float>& upper, int64_t side, int64_t count) {
  std::vector<float> out(static_cast<size_t>(side * count), 0.0F), mixture(static_cast<size_t>(count));
  const auto unit = static_cast<float>(1 / std::sqrt(static_cast<double>(count)));
  Rng random(static_cast<uint64_t>(side));
  for (int64_t row = 0; row < side; ++row) {
    for (int64_t k = 0; k < count; ++k)
      mixture[static_cast<size_t>(k)] = count == side ? (k == row ? 1.0F : 0.0F) : random.below(2) != 0 ? unit : -unit;
    for (int64_t j = row; j < side; ++j)
      for (int64_t k = 0; k < count; ++k)
        out[static_cast<size_t>(j * count + k)] += upper[static_cast<size_t>(row * side + j)] * mixture[static_cast<size_t>(k)];
  }
  return out;
}

}  // namespace

OutputMoments::Directions OutputMoments::directions_of(const Hessian& inputs) {
  const int64_t side = inputs.side, count = std::min(side, kDirections);
  std::vector<double> matrix = inputs.values, status(1);
  std::vector<float> upper(matrix.size());  // U with UᵀU = H⁻¹
  runner_.run(CholeskyInverse{.damping = kDamping * inputs.trace() / static_cast<double>(side)},
              {make_view(matrix.data(), {{side, side}, DType::f64}), make_view(upper.data(), {{side, side}, DType::f32}),
               make_view(status.data(), {{1}, DType::f64})});
  return status[0] == 1 ? Directions{count, mixed_by(upper, side, count)} : Directions{};
}

OutputMoments::OutputMoments(OpSite site, std::span<const TensorPlan> plans, const HessianStore* inputs)
    : runner_(site), plans_(plans), sums_(plans.size()) {
  for (size_t i = 0; i < plans.size() && inputs != nullptr; ++i) {
    const TensorPlan& plan = plans[i];
    const Hessian* found = plan.matrix() ? inputs->find(plan.point) : nullptr;
    if (found == nullptr || found->side != plan.weight.cols) continue;
    const auto [at, fresh] = directions_.try_emplace(plan.point);
    if (fresh) at->second = directions_of(*found);
    if (at->second.count > 0) sums_[i].resize(static_cast<size_t>(plan.weight.rows * plan.weight.rows));
  }
}

void OutputMoments::add(size_t plan, const float* gradient) {
  if (!sums_[plan].empty()) add_to(sums_[plan], plan, gradient);
}

// += (∇W·P)·(∇W·P)ᵀ.
void OutputMoments::add_to(std::vector<double>& sums, size_t plan, const float* gradient) {
  const int64_t rows = plans_[plan].weight.rows, cols = plans_[plan].weight.cols;
  const Directions& directions = directions_.find(plans_[plan].point)->second;
  const int64_t count = directions.count;
  std::vector<float> mixed(static_cast<size_t>(count * rows));  // (K, rows)
  runner_.pool().parallel_for(rows, [&](int64_t row) {
    float own[kDirections] = {};
    for (int64_t j = 0; j < cols; ++j) {
      const float g = gradient[row * cols + j];
      const float* p = directions.values.data() + j * count;
      for (int64_t k = 0; k < count; ++k) own[k] += g * p[k];
    }
    for (int64_t k = 0; k < count; ++k) mixed[static_cast<size_t>(k * rows + row)] = own[k];
  });
  runner_.run(HessianAccumulate{},
              {make_view(sums.data(), {{rows, rows}, DType::f64}), make_view(mixed.data(), {{count, rows}, DType::f32})});
}

Hessian OutputMoments::take(size_t plan, const float* sum, double sequences) {
  if (sums_[plan].empty()) return {};
  std::vector<double> mean(sums_[plan].size());
  add_to(mean, plan, sum);
  for (size_t k = 0; k < mean.size(); ++k) sums_[plan][k] -= mean[k] / sequences;
  return symmetric(plans_[plan].weight.rows, std::move(sums_[plan]));
}

}  // namespace fairway
