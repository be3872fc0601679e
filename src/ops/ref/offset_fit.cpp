// By the formulas, one row after the other.
#include <cmath>
#include <vector>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

template <class T>
class Fit {
 public:
  Fit(const OffsetFit& op, const Forward<OffsetFit>& f)
      : op_(op), f_(f), vocab_(f.in.table.dim(0)), width_(f.in.offset.cols()), table_(f.in.table), logits_(f.in.logits) {}

  void run(int64_t group) {
    const int64_t rows = op_.steps > 0 ? f_.in.logits.rows() / f_.in.offset.rows() : 0, first = group * rows;
    int64_t count = 0;
    for (int64_t j = first; j < first + rows; ++j) count += f_.in.targets.as<int32_t>()[j] >= 0 ? 1 : 0;
    for (int64_t k = 1; k <= op_.steps && count > 0; ++k) {
      const std::vector<double> shift = shift_of(group);
      std::vector<double> residual(static_cast<size_t>(vocab_));
      for (int64_t j = first; j < first + rows; ++j)
        if (f_.in.targets.as<int32_t>()[j] >= 0) add_row(j, shift, residual);
      step(group, residual, static_cast<double>(count), static_cast<double>(*f_.in.taken.as<int32_t>() + k));
    }
    const std::vector<double> shift = shift_of(group);
    for (int64_t v = 0; v < vocab_; ++v)
      f_.out.shift.as<T>()[group * vocab_ + v] = static_cast<T>(shift[static_cast<size_t>(v)]);
  }

 private:
  std::vector<double> shift_of(int64_t group) const {
    std::vector<double> out(static_cast<size_t>(vocab_));
    const Values<T> offset(f_.in.offset);
    for (int64_t v = 0; v < vocab_; ++v)
      for (int64_t d = 0; d < width_; ++d) out[static_cast<size_t>(v)] += table_[v * width_ + d] * offset[group * width_ + d];
    return out;
  }

  void add_row(int64_t row, const std::vector<double>& shift, std::vector<double>& residual) const {
    std::vector<double> z(static_cast<size_t>(vocab_));
    double total = 0;
    for (size_t v = 0; v < z.size(); ++v) {
      z[v] = op_.cap * std::tanh((logits_[row * vocab_ + static_cast<int64_t>(v)] + shift[v]) / op_.cap);
      total += std::exp(z[v] - op_.cap);
    }
    const auto target = static_cast<size_t>(f_.in.targets.as<int32_t>()[row]);
    for (size_t v = 0; v < z.size(); ++v) {
      const double part = z[v] / op_.cap, p = std::exp(z[v] - op_.cap) / total;
      residual[v] += (p - (v == target ? 1.0 : 0.0)) * (1 - part * part);
    }
  }

  void step(int64_t group, const std::vector<double>& residual, double count, double t) {
    T *offset = f_.in.offset.as<T>(), *m = f_.in.m.as<T>(), *v = f_.in.v.as<T>();
    const double c1 = 1 - std::pow(op_.beta1, t), c2 = std::sqrt(1 - std::pow(op_.beta2, t));
    for (int64_t d = 0, i = group * width_; d < width_; ++d, ++i) {
      double g = 0;
      for (int64_t n = 0; n < vocab_; ++n) g += residual[static_cast<size_t>(n)] * table_[n * width_ + d];
      g /= count;
      const double first = op_.beta1 * static_cast<double>(m[i]) + (1 - op_.beta1) * g;
      const double second = op_.beta2 * static_cast<double>(v[i]) + (1 - op_.beta2) * g * g;
      m[i] = static_cast<T>(first);
      v[i] = static_cast<T>(second);
      offset[i] = static_cast<T>(static_cast<double>(offset[i]) * (1 - op_.learning_rate * op_.weight_decay) -
                                 op_.learning_rate * (first / c1) / (std::sqrt(second) / c2 + op_.eps));
    }
  }

  const OffsetFit& op_;
  const Forward<OffsetFit>& f_;
  int64_t vocab_, width_;
  Values<T> table_, logits_;
};

}  // namespace

void forward(const OffsetFit& op, const Forward<OffsetFit>& f) {
  with_dtype(f.in.table, [&]<class T>() {
    Fit<T> fit(op, f);
    for (int64_t group = 0; group < f.in.offset.rows(); ++group) fit.run(group);
  });
}

}  // namespace fairway::ref
