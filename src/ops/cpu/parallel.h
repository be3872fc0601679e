// How the ops of this backend split rows. Tasks and chunks depend on sizes only, never on the number of threads, so neither do
// the bits; tensors too small to pay for waking the team run on the calling thread.
#pragma once

#include <algorithm>

#include "ops/chunks.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/op.h"

namespace fairway::cpu {

inline constexpr int64_t kTaskElements = 16384;  // 64 KiB of floats per task at least

// body(RowRange) over all rows; row_elements is how many numbers a row of work touches.
template <class Body>
void for_rows(Queue& queue, int64_t rows, int64_t row_elements, Body&& body) {
  if (rows <= 0) return;
  const int64_t rows_per_task = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, row_elements));
  const int64_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  queue.pool().parallel_for(tasks, [&](int64_t task) {
    body(RowRange{task * rows_per_task, std::min(rows, (task + 1) * rows_per_task)});
  });
}

template <class Body>
void for_elements(Queue& queue, int64_t count, Body&& body) {
  for_rows(queue, count, 1, body);
}

// body(i) for i in [0, tasks), on the calling thread when all of them together touch few elements.
template <class Body>
void for_tasks(Queue& queue, int64_t tasks, int64_t elements, Body&& body) {
  if (elements < 2 * kTaskElements) {
    for (int64_t i = 0; i < tasks; ++i) body(i);
  } else {
    queue.pool().parallel_for(tasks, body);
  }
}

// body(chunk, RowRange) over the fixed chunks of ops/chunks.h, empty ones too: their partial sums must be zeroed.
template <class Body>
void for_chunks(Queue& queue, int64_t rows, int64_t row_elements, Body&& body) {
  for_tasks(queue, kRowChunks, rows * row_elements, [&](int64_t chunk) { body(chunk, row_chunk(rows, chunk)); });
}

// Sum of one column of partials over the chunks, in order.
template <class Real>
double sum_chunks(const Real* partials, int64_t columns, int64_t column) {
  double sum = 0;
  for (int64_t chunk = 0; chunk < kRowChunks; ++chunk) sum += static_cast<double>(partials[chunk * columns + column]);
  return sum;
}

inline void put_gradient(const Tensor& gradient, int64_t index, double value) {
  float& to = gradient.as<float>()[index];
  to = static_cast<float>(gradient.accumulate ? static_cast<double>(to) + value : value);
}

template <class Op>
void forward_by_rows(const Op& op, const Forward<Op>& call, int64_t rows, int64_t row_elements) {
  const OpRowKernel<Op>& kernel = kernels().op_rows;
  for_rows(*call.queue, rows, row_elements, [&](RowRange range) { kernel.forward(op, call, range); });
}

template <class Op>
void backward_by_rows(const Op& op, const Backward<Op>& call, int64_t rows, int64_t row_elements) {
  const OpRowKernel<Op>& kernel = kernels().op_rows;
  for_rows(*call.queue, rows, row_elements, [&](RowRange range) { kernel.backward(op, call, range, nullptr); });
}

// The same over fixed chunks, each with `columns` partial sums of its own at the head of the workspace, which is returned.
template <class Real, class Op>
const Real* backward_by_chunks(const Op& op, const Backward<Op>& call, int64_t rows, int64_t row_elements, int64_t columns) {
  const OpRowKernel<Op>& kernel = kernels().op_rows;
  Real* partials = reinterpret_cast<Real*>(call.workspace.data);
  for_chunks(*call.queue, rows, row_elements,
             [&](int64_t chunk, RowRange range) { kernel.backward(op, call, range, partials + chunk * columns); });
  return partials;
}

}  // namespace fairway::cpu
