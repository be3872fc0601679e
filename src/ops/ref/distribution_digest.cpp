// Row by row.
#include "ops/digest_row.h"
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const DistributionDigest& op, const Forward<DistributionDigest>& f) {
  with_dtype(f.in.logits, [&]<class T>() {
    for (int64_t row = 0; row < f.in.logits.rows(); ++row) digest_row<T>(op, f, row);
  });
}

}  // namespace fairway::ref
