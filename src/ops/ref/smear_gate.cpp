// y_t = (1−γ)⊙u_t + γ⊙u_{t−1}, γ = σ(gate), u_{−1} = 0 (spec §4.3). Backward (spec §6.9):
// du_t = (1−γ)⊙g_t + γ⊙g_{t+1} inside a sequence, dgate = γ(1−γ)⊙Σ g_t⊙(u_{t−1} − u_t).
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const SmearGate& op, const Forward<SmearGate>& f) {
  with_dtype(f.in.u, [&]<class T>() {
    const Values<T> u(f.in.u), gate(f.in.gate);
    const Target<T> y(f.out.y);
    const int64_t width = f.in.u.cols();
    for (int64_t m = 0; m < f.in.u.rows(); ++m)
      for (int64_t i = 0; i < width; ++i) {
        const double open = sigmoid(gate[i]), previous = m % op.row_length == 0 ? 0 : u[(m - 1) * width + i];
        y.put(m * width + i, (1 - open) * u[m * width + i] + open * previous);
      }
  });
}

void backward(const SmearGate& op, const Backward<SmearGate>& b) {
  with_dtype(b.in.u, [&]<class T>() {
    const Values<T> u(b.in.u), gate(b.in.gate), g(b.dout.y);
    const Target<T> du(b.din.u), dgate(b.din.gate);
    const int64_t width = b.in.u.cols(), rows = b.in.u.rows();
    double* opened = zeros(b.workspace, width);  // Σ g_t⊙(u_{t−1} − u_t)
    for (int64_t m = 0; m < rows; ++m)
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = m * width + i;
        const double open = sigmoid(gate[i]);
        const double previous = m % op.row_length == 0 ? 0 : u[at - width];
        const double next = (m + 1) % op.row_length == 0 ? 0 : g[at + width];
        du.put(at, (1 - open) * g[at] + open * next);
        opened[i] += g[at] * (previous - u[at]);
      }
    for (int64_t i = 0; i < width; ++i) {
      const double open = sigmoid(gate[i]);
      dgate.put(i, open * (1 - open) * opened[i]);
    }
  });
}

}  // namespace fairway::ref
