// SoftcapCrossEntropy (spec §4.9, §6.1): logits by one product, the rest a row at a time in place.
#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/cpu/product.h"

namespace fairway::cpu {
namespace {

void check_targets(const SoftcapCrossEntropy::In& in) {
  const int32_t* target = in.targets.as<int32_t>();
  bool inside = true;
  for (int64_t m = 0; m < in.targets.numel(); ++m) inside &= target[m] >= 0 && target[m] < in.table.dim(0);
  FAIRWAY_ASSERT(inside, "target outside of the vocabulary");
}

}  // namespace

void forward(const SoftcapCrossEntropy& op, const Forward<SoftcapCrossEntropy>& call) {
  check_targets(call.in);
  const int64_t rows = call.in.x.rows(), vocab = call.in.table.dim(0);
  GemmArgs head = times_transposed(call.in.x, call.in.table, call.saved.logits);
  if (call.in.addition) head.epilogue = residual_epilogue(call.in.addition, {}, vocab);
  product(*call.queue, head);
  const LossKernels& loss = kernels().loss;
  float *logits = call.saved.logits.as<float>(), *lse = call.saved.lse.as<float>(), *nll = call.out.nll.as<float>();
  const int32_t* targets = call.in.targets.as<int32_t>();
  const float* expected = call.in.expected ? call.in.expected.as<float>() : nullptr;
  for_rows(*call.queue, rows, vocab, [&](RowRange range) {
    for (int64_t m = range.begin; m < range.end; ++m) {
      float* z = logits + m * vocab;
      const double log_sum = loss.softcap(z, vocab, static_cast<float>(op.cap));
      lse[m] = static_cast<float>(log_sum);
      const double mean =
          expected != nullptr ? loss.expectation(z, expected + m * vocab, vocab) : static_cast<double>(z[targets[m]]);
      nll[m] = static_cast<float>(log_sum - mean);
    }
  });
  double total = 0;
  for (int64_t m = 0; m < rows; ++m) total += static_cast<double>(nll[m]);
  *call.out.loss.as<float>() = static_cast<float>(total / static_cast<double>(rows));
}

void backward(const SoftcapCrossEntropy& op, const Backward<SoftcapCrossEntropy>& call) {
  const int64_t rows = call.in.x.rows(), vocab = call.in.table.dim(0);
  const Tensor dlogits = make_view(call.workspace.data, call.saved.logits.spec);
  const double dloss = call.dout.loss ? static_cast<double>(*call.dout.loss.as<float>()) : 0.0;
  const float factor = static_cast<float>(dloss / static_cast<double>(rows));
  const LossKernels& loss = kernels().loss;
  const float *z = call.saved.logits.as<float>(), *lse = call.saved.lse.as<float>();
  const int32_t* targets = call.in.targets.as<int32_t>();
  const float* expected = call.in.expected ? call.in.expected.as<float>() : nullptr;
  float* grad = dlogits.as<float>();
  for_rows(*call.queue, rows, 2 * vocab, [&](RowRange range) {
    for (int64_t m = range.begin; m < range.end; ++m)
      loss.softcap_grad(z + m * vocab, grad + m * vocab,
                        {.count = vocab,
                         .target = targets[m],
                         .expected = expected != nullptr ? expected + m * vocab : nullptr,
                         .cap = static_cast<float>(op.cap),
                         .lse = lse[m],
                         .factor = factor});
  });
  if (call.din.addition) pass_gradient(*call.queue, dlogits, call.din.addition);
  if (call.din.x) product(*call.queue, times_weight(dlogits, call.in.table.as<float>(), call.din.x));
  if (call.din.table)
    product(*call.queue, weight_gradient(dlogits, call.in.x, call.din.table.as<float>(), call.din.table.accumulate));
}

}  // namespace fairway::cpu
