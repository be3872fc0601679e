// y_t = e_t + λ·s_t·e_{t−1}, s_t = σ(w·e_t[0:W]), where row t smears: t > 0 and its token is not BOS; else y_t = e_t.
// Gradients in spec A.2, with c_t = g_t·e_{t−1}.
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

auto smearing_rows(const SmearGateInput& op, const SmearGateInput::In& in) {
  return [&op, tokens = in.tokens.as<int32_t>()](int64_t m) { return m % op.row_length != 0 && tokens[m] != op.bos; };
}

template <class T>
double opening(const SmearGateInput::In& in, int64_t m) {
  const Values<T> e(in.e), weight(in.weight);
  const int64_t width = in.e.cols();
  return sigmoid(sum(in.weight.numel(), [&](int64_t i) { return weight[i] * e[m * width + i]; }));
}

}  // namespace

void forward(const SmearGateInput& op, const Forward<SmearGateInput>& f) {
  with_dtype(f.in.e, [&]<class T>() {
    const Values<T> e(f.in.e), lambda(f.in.lambda);
    const Target<T> y(f.out.y);
    const auto smears = smearing_rows(op, f.in);
    const int64_t width = f.in.e.cols();
    for (int64_t m = 0; m < f.in.e.rows(); ++m) {
      const double factor = smears(m) ? lambda[0] * opening<T>(f.in, m) : 0;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = m * width + i;
        y.put(at, e[at] + (smears(m) ? factor * e[at - width] : 0));
      }
    }
  });
}

void backward(const SmearGateInput& op, const Backward<SmearGateInput>& b) {
  with_dtype(b.in.e, [&]<class T>() {
    const Values<T> e(b.in.e), weight(b.in.weight), lambda(b.in.lambda), g(b.dout.y);
    const Target<T> de(b.din.e), dweight(b.din.weight), dlambda(b.din.lambda);
    const auto smears = smearing_rows(op, b.in);
    const int64_t width = b.in.e.cols(), rows = b.in.e.rows(), gated = b.in.weight.numel();
    double* weight_grad = zeros(b.workspace, gated);
    double lambda_grad = 0;
    for (int64_t m = 0; m < rows; ++m) {
      double logit_grad = 0;
      if (smears(m)) {
        const double s = opening<T>(b.in, m);
        const double c = sum(width, [&](int64_t i) { return g[m * width + i] * e[(m - 1) * width + i]; });
        lambda_grad += s * c;
        logit_grad = lambda[0] * s * (1 - s) * c;
      }
      const bool next = m + 1 < rows && smears(m + 1);
      const double handed = next ? lambda[0] * opening<T>(b.in, m + 1) : 0;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = m * width + i;
        if (i < gated) weight_grad[i] += logit_grad * e[at];
        de.put(at, g[at] + (i < gated ? logit_grad * weight[i] : 0) + (next ? handed * g[at + width] : 0));
      }
    }
    for (int64_t i = 0; i < gated; ++i) dweight.put(i, weight_grad[i]);
    dlambda.put(0, lambda_grad);
  });
}

}  // namespace fairway::ref
