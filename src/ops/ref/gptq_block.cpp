#include <cmath>
#include <vector>

#include "base/trellis.h"
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

struct Level {
  double cost = INFINITY;
  int q = 0;
};

// The nearest q of those that are `residue` modulo 4.
Level nearest(double x, int residue, int levels) {
  int q = residue + 4 * static_cast<int>(std::nearbyint((std::clamp<double>(x, -levels, levels) - residue) / 4));
  if (q > levels) q -= 4;
  if (q < -levels) q += 4;
  return {(x - q) * (x - q), q};
}

// q of rows from one start of the trellis to the next; x(i) is w/s.
template <class X>
std::vector<int> best_path(int64_t rows, int levels, const X& x) {
  std::vector<double> costs(kTrellisStates, INFINITY);
  costs[0] = 0;
  std::vector<std::vector<bool>> second_bit;
  std::vector<std::vector<Level>> by_residue;
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<Level>& choices = by_residue.emplace_back();
    for (int residue = 0; residue < 4; ++residue) choices.push_back(nearest(x(i), residue, levels));
    std::vector<double> next(kTrellisStates);
    std::vector<bool>& taken = second_bit.emplace_back(kTrellisStates);
    for (int state = 0; state < kTrellisStates; ++state) {
      const auto odd = static_cast<size_t>(state / (kTrellisStates / 2));
      const double without = costs[static_cast<size_t>(trellis_state_before(state, false))] + choices[odd].cost;
      const double with = costs[static_cast<size_t>(trellis_state_before(state, true))] + choices[odd + 2].cost;
      taken[static_cast<size_t>(state)] = with < without;
      next[static_cast<size_t>(state)] = std::min(with, without);
    }
    costs = next;
  }
  auto state = static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  std::vector<int> path(static_cast<size_t>(rows));
  for (size_t i = path.size(); i-- > 0;) {
    const bool taken = second_bit[i][static_cast<size_t>(state)];
    path[i] = by_residue[i][static_cast<size_t>(state / (kTrellisStates / 2) + (taken ? 2 : 0))].q;
    state = trellis_state_before(state, taken);
  }
  return path;
}

}  // namespace

void forward(const GptqBlock& op, const Forward<GptqBlock>& f) {
  with_dtype(f.in.work, [&]<class T>() {
    const int64_t rows = f.in.work.rows(), columns = f.in.work.cols(), width = f.in.error.cols();
    const Values<T> factor(f.in.factor), scale(f.in.scale);
    T* work = f.in.work.as<T>();
    const double levels = op.levels;
    const auto take = [&](int64_t row, int64_t j, double q) {
      T* w = work + row * columns;
      const double e = (static_cast<double>(w[j]) - scale[row] * q) / factor[j * columns + j];
      w[j] = static_cast<T>(q);
      f.in.error.as<T>()[row * width + j - op.begin] = static_cast<T>(e);
      f.in.loss.as<double>()[row] += e * e;
      for (int64_t l = j + 1; l < op.end; ++l) w[l] = static_cast<T>(static_cast<double>(w[l]) - e * factor[j * columns + l]);
    };
    for (int64_t j = op.begin; j < op.end; ++j) {
      const auto scaled = [&](int64_t row) {
        return scale[row] > 0 ? static_cast<double>(work[row * columns + j]) / scale[row] : 0.0;
      };
      for (int64_t first = 0; first < rows; first += kTrellisRows) {
        const int64_t count = std::min(kTrellisRows, rows - first);
        std::vector<int> path;
        if (op.trellis) path = best_path(count, op.levels, [&](int64_t i) { return scaled(first + i); });
        for (int64_t i = 0; i < count; ++i)
          take(first + i, j,
               op.trellis ? path[static_cast<size_t>(i)] : std::clamp(std::nearbyint(scaled(first + i)), -levels, levels));
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      const T* error = f.in.error.as<T>() + row * width;
      for (int64_t l = op.end; l < columns; ++l) {
        T& w = work[row * columns + l];
        w = static_cast<T>(static_cast<double>(w) - sum(op.end - op.begin, [&](int64_t k) {
                             return static_cast<double>(error[k]) * factor[(op.begin + k) * columns + l];
                           }));
      }
    }
  });
}

}  // namespace fairway::ref
