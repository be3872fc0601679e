#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"

namespace fairway::cpu {

void forward(const GateLogits&, const Forward<GateLogits>& call) {
  const int64_t heads = call.in.gate.dim(0), width = call.in.a.cols(), gated = call.in.gate.cols();
  const float *a = call.in.a.as<float>(), *gate = call.in.gate.as<float>();
  float* logit = call.out.logit.as<float>();
  for_rows(*call.queue, call.in.a.rows(), 2 * call.in.gate.numel(), [&](RowRange rows) {
    for (int64_t i = rows.begin * heads; i < rows.end * heads; ++i) {
      float total = 0;
      for (int64_t w = 0; w < gated; ++w) total += gate[i % heads * gated + w] * a[i / heads * width + w];
      logit[i] = total;
    }
  });
}

void backward(const GateLogits&, const Backward<GateLogits>& call) {
  const int64_t heads = call.in.gate.dim(0), width = call.in.a.cols(), gated = call.in.gate.cols(), gates = heads * gated;
  const float *a = call.in.a.as<float>(), *gate = call.in.gate.as<float>(), *g = call.dout.logit.as<float>();
  auto* partials = reinterpret_cast<double*>(call.workspace.data);
  for_chunks(*call.queue, call.in.a.rows(), 4 * gates + width, [&](int64_t chunk, RowRange rows) {
    double* sums = partials + chunk * gates;
    std::fill_n(sums, gates, 0.0);
    for (int64_t m = rows.begin; m < rows.end; ++m) {
      float* da = call.din.a ? call.din.a.as<float>() + m * width : nullptr;
      if (da != nullptr && !call.din.a.accumulate) std::fill_n(da, width, 0.0f);
      for (int64_t i = 0; i < gates; ++i) {
        const int64_t w = i % gated;
        const float slope = g[m * heads + i / gated];
        sums[i] += static_cast<double>(slope) * static_cast<double>(a[m * width + w]);
        if (da != nullptr) da[w] += slope * gate[i];
      }
    }
  });
  for (int64_t i = 0; i < gates && call.din.gate; ++i) put_gradient(call.din.gate, i, sum_chunks(partials, gates, i));
}

}  // namespace fairway::cpu
