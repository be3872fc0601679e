#include "quant/lqer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/half.h"

namespace fairway {
namespace {

constexpr int64_t kExtraVectors = 8;  // of the subspace, so that the wanted ones converge
constexpr int kIterations = 80;

using Vectors = std::vector<std::vector<double>>;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Gram–Schmidt, twice for exactness; a vector that vanishes becomes zero.
void orthonormalize(Vectors& vectors) {
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (int pass = 0; pass < 2; ++pass)
      for (size_t j = 0; j < i; ++j) {
        const double along = dot(vectors[i], vectors[j]);
        for (size_t k = 0; k < vectors[i].size(); ++k) vectors[i][k] -= along * vectors[j][k];
      }
    const double norm = std::sqrt(dot(vectors[i], vectors[i]));
    for (double& value : vectors[i]) value = norm > 0 ? value / norm : 0;
  }
}

// gram: (n, n), both triangles.
Vectors leading_eigenvectors(ThreadPool& pool, const std::vector<double>& gram, int64_t n, int64_t count) {
  Vectors basis(static_cast<size_t>(std::min(n, count + kExtraVectors)), std::vector<double>(static_cast<size_t>(n)));
  for (size_t v = 0; v < basis.size(); ++v)
    for (size_t i = 0; i < basis[v].size(); ++i) {
      const uint64_t mixed = (v * 0x9E3779B97F4A7C15ULL) ^ ((i + 1) * 0xBF58476D1CE4E5B9ULL);
      basis[v][i] = static_cast<double>((mixed ^ mixed >> 29) * 0x94D049BB133111EBULL >> 11) * 0x1p-53 - 0.5;
    }
  orthonormalize(basis);
  for (int round = 0; round < kIterations; ++round) {
    Vectors next(basis.size(), std::vector<double>(static_cast<size_t>(n)));
    pool.parallel_for(n, [&](int64_t i) {
      const double* row = gram.data() + i * n;
      for (size_t v = 0; v < basis.size(); ++v)
        next[v][static_cast<size_t>(i)] = std::inner_product(row, row + n, basis[v].begin(), 0.0);
    });
    basis = std::move(next);
    std::stable_sort(basis.begin(), basis.end(), [](const auto& a, const auto& b) { return dot(a, a) > dot(b, b); });
    orthonormalize(basis);
  }
  basis.resize(static_cast<size_t>(count));
  return basis;
}

}  // namespace

LeadingVectors leading_vectors(OpRunner& runner, MatrixView m, int64_t rank) {
  const bool tall = m.rows >= m.cols;
  const int64_t n = std::min(m.rows, m.cols), other = std::max(m.rows, m.cols);
  rank = std::min(rank, n);
  const auto entry = [&](int64_t small, int64_t large) {
    return tall ? m.data[large * m.cols + small] : m.data[small * m.cols + large];
  };
  std::vector<float> rows(static_cast<size_t>(n * other));  // (other, n)
  for (int64_t i = 0; i < other; ++i)
    for (int64_t j = 0; j < n; ++j) rows[static_cast<size_t>(i * n + j)] = entry(j, i);
  std::vector<double> gram(static_cast<size_t>(n * n), 0.0);
  runner.run(HessianAccumulate{},
             {make_view(gram.data(), {{n, n}, DType::f64}), make_view(rows.data(), {{other, n}, DType::f32})});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) gram[static_cast<size_t>(j * n + i)] = gram[static_cast<size_t>(i * n + j)];
  const Vectors vectors = leading_eigenvectors(runner.pool(), gram, n, rank);
  LeadingVectors out{rank, std::vector<double>(static_cast<size_t>(m.rows * rank)),
                     std::vector<double>(static_cast<size_t>(rank * m.cols))};
  for (int64_t r = 0; r < rank; ++r) {
    const std::vector<double>& own = vectors[static_cast<size_t>(r)];
    std::vector<double> image(static_cast<size_t>(other));  // E·v or Eᵀ·u: the other side times the singular value
    for (int64_t i = 0; i < other; ++i)
      for (int64_t j = 0; j < n; ++j)
        image[static_cast<size_t>(i)] +=
            static_cast<double>(rows[static_cast<size_t>(i * n + j)]) * own[static_cast<size_t>(j)];
    const double singular = std::sqrt(dot(image, image));
    for (int64_t i = 0; i < m.rows; ++i) {
      const auto at = static_cast<size_t>(i);
      out.left[static_cast<size_t>(i * rank + r)] = tall ? image[at] : own[at] * singular;
    }
    for (int64_t j = 0; j < m.cols; ++j) {
      const auto at = static_cast<size_t>(j);
      out.right[static_cast<size_t>(r * m.cols + j)] = tall ? own[at] : (singular > 0 ? image[at] / singular : 0);
    }
  }
  return out;
}

LowRankCorrection pack_correction(const LeadingVectors& vectors, int64_t rows, int64_t cols, int64_t group) {
  LowRankCorrection packed{.rank = vectors.rank, .group = group};
  const auto pack = [](std::span<const double> values, double divisor, double least, double most, int8_t* to) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::abs(value));
    const uint16_t half = to_half(static_cast<float>(largest / divisor));
    const double scale = from_half(half);
    for (size_t i = 0; i < values.size(); ++i)
      to[i] = scale > 0 ? static_cast<int8_t>(std::clamp(std::nearbyint(values[i] / scale), least, most)) : int8_t{0};
    return half;
  };
  packed.a.resize(static_cast<size_t>(rows * vectors.rank));
  packed.b.resize(static_cast<size_t>(vectors.rank * cols));
  packed.a_scale = pack(vectors.left, 1.5, -2, 1, packed.a.data());
  const auto size = static_cast<size_t>(group);
  for (size_t at = 0; at < packed.b.size(); at += size) {
    const size_t count = std::min(size, packed.b.size() - at);
    packed.b_scale.push_back(pack(std::span(vectors.right).subspan(at, count), 7.5, -8, 7, packed.b.data() + at));
  }
  return packed;
}

void correct_largest_errors(const std::vector<TensorPlan>& plans, const LqerRecipe& lqer, OpRunner& runner,
                            FactorCache& factors, QuantizedModel& model, QuantReport& report) {
  std::vector<size_t> order;
  for (size_t i = 0; i < plans.size(); ++i)
    if (model.tensors[i].coding == TensorCoding::integer_rows) order.push_back(i);
  const auto squares = [&](size_t i) { return report.tensors[i].mean_square * static_cast<double>(plans[i].weight.count()); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return squares(a) > squares(b); });
  order.resize(std::min(order.size(), static_cast<size_t>(lqer.tensors)));
  for (const size_t i : order) {
    const MatrixView w = plans[i].weight;
    QuantizedTensor& tensor = model.tensors[i];
    const std::vector<float> error = error_of(w, tensor.q, tensor.scale, runner.pool());
    const LeadingVectors vectors = leading_vectors(runner, {error.data(), w.rows, w.cols}, lqer.rank);
    tensor.correction = pack_correction(vectors, w.rows, w.cols, lqer.group);
    TensorReport corrected = report.tensors[i];
    corrected.corrected = true;
    measure(plans[i], tensor, runner, factors.hessian(plans[i]), corrected);
    if (corrected.mean_square < report.tensors[i].mean_square)
      report.tensors[i] = std::move(corrected);
    else
      tensor.correction = {};
  }
}

}  // namespace fairway
