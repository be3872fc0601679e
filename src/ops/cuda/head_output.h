// HeadOutput as a part of attention, with its scratch memory.
#pragma once

#include "ops/cuda/context.h"
#include "ops/head_output.h"

namespace fairway::cuda {

struct HeadStatistics;

void head_output_forward(Scratch& scratch, const HeadOutput& op, const Forward<HeadOutput>& f);
void head_output_backward(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b);
// The gradient in one pass over the rows, which leaves the statistics besides. False where the shape is not for it: nothing was
// done.
bool head_output_rows_backward(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b,
                               const HeadStatistics& statistics);

// The heads' outputs as they were, for kernels that want them.
Tensor heads_before_output(Scratch& scratch, const HeadOutput& op, const Backward<HeadOutput>& b);

}  // namespace fairway::cuda
