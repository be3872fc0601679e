// z = cap·tanh((x·tableᵀ + addition)/cap), nll = logsumexp(z) − z[target], loss = mean(nll) (spec §4.9). Backward (spec §6.1):
// dℓ_v = (softmax(z)_v − [v = target])·(1 − (z_v/cap)²)·dloss/M, dx = dℓ·table, dtable = dℓᵀ·x, daddition = dℓ.
#include <cmath>
#include <limits>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

int64_t target_of(const SoftcapCrossEntropy::In& in, int64_t m) {
  const int64_t target = in.targets.as<int32_t>()[m];
  FAIRWAY_ASSERT(target >= 0 && target < in.table.dim(0), "target outside of the vocabulary");
  return target;
}

template <class T>
void logit_gradients(const SoftcapCrossEntropy& op, const Backward<SoftcapCrossEntropy>& b, T* dlogits) {
  const Values<T> z(b.saved.logits), lse(b.saved.lse), dloss(b.dout.loss), expected(b.in.expected);
  const int64_t rows = b.in.x.rows(), vocab = b.in.table.dim(0);
  const double share = dloss[0] / static_cast<double>(rows);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t v = 0; v < vocab; ++v) {
      const double value = z[m * vocab + v], capped = value / op.cap;
      const double wanted = b.in.expected ? expected[m * vocab + v] : (v == target_of(b.in, m) ? 1 : 0);
      const double error = std::exp(value - lse[m]) - wanted;
      dlogits[m * vocab + v] = static_cast<T>(error * (1 - capped * capped) * share);
    }
}

}  // namespace

void forward(const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& f) {
  with_dtype(f.in.x, [&]<class T>() {
    const Values<T> x(f.in.x), table(f.in.table), addition(f.in.addition), z(f.saved.logits), expected(f.in.expected);
    const Target<T> logits(f.saved.logits), lse(f.saved.lse), loss(f.out.loss), nll(f.out.nll);
    const int64_t rows = f.in.x.rows(), width = f.in.x.cols(), vocab = f.in.table.dim(0);
    double total = 0;
    for (int64_t m = 0; m < rows; ++m) {
      double highest = -std::numeric_limits<double>::infinity();
      for (int64_t v = 0; v < vocab; ++v) {
        const double logit =
            sum(width, [&](int64_t i) { return x[m * width + i] * table[v * width + i]; }) + addition[m * vocab + v];
        logits.put(m * vocab + v, op.cap * std::tanh(logit / op.cap));
        highest = std::max(highest, z[m * vocab + v]);
      }
      const double log_total = highest + std::log(sum(vocab, [&](int64_t v) { return std::exp(z[m * vocab + v] - highest); }));
      const double mean = f.in.expected ? sum(vocab, [&](int64_t v) { return expected[m * vocab + v] * z[m * vocab + v]; })
                                        : z[m * vocab + target_of(f.in, m)];
      const double nats = log_total - mean;
      lse.put(m, log_total);
      nll.put(m, nats);
      total += nats;
    }
    loss.put(0, total / static_cast<double>(rows));
  });
}

void backward(const SoftcapCrossEntropy& op, const Backward<SoftcapCrossEntropy>& b) {
  with_dtype(b.in.x, [&]<class T>() {
    const Values<T> x(b.in.x), table(b.in.table);
    const Target<T> dx(b.din.x), dtable(b.din.table), daddition(b.din.addition);
    const int64_t rows = b.in.x.rows(), width = b.in.x.cols(), vocab = b.in.table.dim(0);
    FAIRWAY_ASSERT(b.workspace.spec.bytes() >= static_cast<size_t>(rows * vocab) * sizeof(T), "the workspace is too small");
    T* dlogits = reinterpret_cast<T*>(b.workspace.data);
    logit_gradients(op, b, dlogits);
    for (int64_t i = 0; i < rows * vocab; ++i) daddition.put(i, static_cast<double>(dlogits[i]));
    for (int64_t m = 0; m < rows && dx; ++m)
      for (int64_t i = 0; i < width; ++i)
        dx.put(m * width + i, sum(vocab, [&](int64_t v) { return dlogits[m * vocab + v] * table[v * width + i]; }));
    for (int64_t v = 0; v < vocab && dtable; ++v)
      for (int64_t i = 0; i < width; ++i)
        dtable.put(v * width + i, sum(rows, [&](int64_t m) { return dlogits[m * vocab + v] * x[m * width + i]; }));
  });
}

}  // namespace fairway::ref
