#include "ops/draw_row.h"
#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {

void forward(const DrawTokens& op, const Forward<DrawTokens>& f) {
  with_dtype(f.in.logits, [&]<class T>() {
    double* weights = zeros(f.workspace, f.in.logits.numel());
    for (int64_t row = 0; row < f.in.logits.rows(); ++row) draw_row<T>(op, f.in, row, weights);
    advance_position<T>(f.in);
  });
}

}  // namespace fairway::ref
