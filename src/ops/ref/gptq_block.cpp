#include <cmath>
#include <span>
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
    const int residue = state / (kTrellisStates / 2) + (taken ? 2 : 0);
    path[i] = by_residue[i][static_cast<size_t>(residue)].q;
    state = trellis_state_before(state, taken);
  }
  return path;
}

// The same where rows make up for each other: every state has aims of its own. step(i) and v(i, l) are of rows from the start.
struct Survivor {
  double cost = INFINITY;
  std::vector<double> aims{};
  std::vector<int> path{};
};
template <class Step, class V>
std::vector<int> best_survivor(std::span<const double> aims, int levels, const Step& step, const V& v) {
  std::vector<Survivor> now(kTrellisStates);
  now[0] = {0, {aims.begin(), aims.end()}};
  for (size_t i = 0; i < aims.size(); ++i) {
    std::vector<Survivor> after(kTrellisStates);
    for (int state = 0; state < kTrellisStates; ++state)
      for (const bool second : {false, true}) {
        const Survivor& from = now[static_cast<size_t>(trellis_state_before(state, second))];
        if (from.cost == INFINITY) continue;
        const double s = step(i);
        const int q = nearest(s > 0 ? from.aims[i] / s : 0, state / (kTrellisStates / 2) + (second ? 2 : 0), levels).q;
        const double d = (from.aims[i] - s * q) / v(i, i);
        Survivor& into = after[static_cast<size_t>(state)];
        if (!(from.cost + d * d < into.cost)) continue;
        into = from;
        into.cost += d * d;
        into.path.push_back(q);
        for (size_t l = i + 1; l < aims.size(); ++l) into.aims[l] -= d * v(i, l);
      }
    now = std::move(after);
  }
  return std::min_element(now.begin(), now.end(), [](const Survivor& a, const Survivor& b) { return a.cost < b.cost; })->path;
}

template <class T>
class Block {
 public:
  Block(const GptqBlock& op, const GptqBlock::In& in)
      : op_(op),
        in_(in),
        rows_(in.work.rows()),
        columns_(in.work.cols()),
        work_(in.work.as<T>()),
        factor_(in.factor),
        scale_(in.scale),
        outputs_(in.outputs) {}

  void one_sided(int64_t j) {
    for (int64_t first = 0; first < rows_; first += kTrellisRows) {
      const int64_t count = std::min(kTrellisRows, rows_ - first);
      const auto x = [&](int64_t i) { return scale_[first + i] > 0 ? weight(first + i, j) / scale_[first + i] : 0.0; };
      std::vector<int> path;
      if (op_.trellis) path = best_path(count, op_.levels, x);
      for (int64_t i = 0; i < count; ++i)
        take(first + i, j, op_.trellis ? path[static_cast<size_t>(i)] : rounded(x(i)), weight(first + i, j));
    }
  }

  void two_sided(int64_t j) {
    const int64_t side = in_.outputs.dim(0);
    for (int64_t first = 0; first < rows_; first += side) {
      std::vector<double> aims;
      for (int64_t i = 0; i < side; ++i) aims.push_back(weight(first + i, j));
      std::vector<int> path;
      for (int64_t i = 0; i < side; ++i) {
        const std::span<double> below = std::span(aims).subspan(static_cast<size_t>(i));
        const auto v = [&](size_t row, size_t l) {
          return outputs_[(i + static_cast<int64_t>(row)) * side + i + static_cast<int64_t>(l)];
        };
        const double s = scale_[first + i];
        if (op_.trellis && i % kTrellisRows == 0)
          path = best_survivor(
              below.first(static_cast<size_t>(std::min(kTrellisRows, side - i))), op_.levels,
              [&](size_t row) { return scale_[first + i + static_cast<int64_t>(row)]; }, v);
        const int q = op_.trellis ? path[static_cast<size_t>(i % kTrellisRows)] : s > 0 ? rounded(below[0] / s) : 0;
        take(first + i, j, q, below[0]);
        const double d = (below[0] - s * q) / v(0, 0);
        for (size_t l = 1; l < below.size(); ++l) below[l] -= d * v(0, l);
      }
    }
  }

  // The block's errors, into the columns after it.
  void spread() {
    for (int64_t row = 0; row < rows_; ++row) {
      const T* error = in_.error.as<T>() + row * in_.error.cols();
      for (int64_t l = op_.end; l < columns_; ++l)
        work_[row * columns_ + l] =
            static_cast<T>(weight(row, l) - sum(op_.end - op_.begin, [&](int64_t k) {
                             return static_cast<double>(error[k]) * factor_[(op_.begin + k) * columns_ + l];
                           }));
    }
  }

 private:
  double weight(int64_t row, int64_t j) const { return static_cast<double>(work_[row * columns_ + j]); }
  int rounded(double x) const { return static_cast<int>(std::clamp<double>(std::nearbyint(x), -op_.levels, op_.levels)); }
  void take(int64_t row, int64_t j, int q, double aim) {
    const double e = (weight(row, j) - scale_[row] * q) / factor_[j * columns_ + j];
    const double counted = (aim - scale_[row] * q) / factor_[j * columns_ + j];
    T* w = work_ + row * columns_;
    w[j] = static_cast<T>(q);
    in_.error.as<T>()[row * in_.error.cols() + j - op_.begin] = static_cast<T>(e);
    in_.loss.as<double>()[row] += counted * counted;
    for (int64_t l = j + 1; l < op_.end; ++l) w[l] = static_cast<T>(weight(row, l) - e * factor_[j * columns_ + l]);
  }

  const GptqBlock& op_;
  const GptqBlock::In& in_;
  int64_t rows_, columns_;
  T* work_;
  Values<T> factor_, scale_, outputs_;
};

}  // namespace

void forward(const GptqBlock& op, const Forward<GptqBlock>& f) {
  with_dtype(f.in.work, [&]<class T>() {
    Block<T> block(op, f.in);
    for (int64_t j = op.begin; j < op.end; ++j) f.in.outputs ? block.two_sided(j) : block.one_sided(j);
    block.spread();
  });
}

}  // namespace fairway::ref
