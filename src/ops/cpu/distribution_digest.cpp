// DistributionDigest: rows are shared out.
#include "ops/cpu/cpu.h"
#include "ops/cpu/parallel.h"
#include "ops/digest_row.h"

namespace fairway::cpu {

void forward(const DistributionDigest& op, const Forward<DistributionDigest>& call) {
  for_rows(*call.queue, call.in.logits.rows(), call.in.logits.cols(), [&](RowRange range) {
    for (int64_t row = range.begin; row < range.end; ++row) digest_row<float>(op, call, row);
  });
}

}  // namespace fairway::cpu
