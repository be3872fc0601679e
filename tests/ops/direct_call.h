// Calls an op of ref on hand-made f64 tensors, for tests against closed forms.
#pragma once

#include "ops/guarded.h"
#include "ops/ref/ref.h"

namespace fairway::ops_test {

inline Guarded doubles(Shape shape, const std::vector<double>& values) {
  Guarded out({shape, DType::f64}, 0);
  out.set(values);
  return out;
}

inline Guarded integers(const std::vector<double>& values) {
  Guarded out({{static_cast<int64_t>(values.size())}, DType::i32}, 0);
  out.set(values);
  return out;
}

// Runs the op and returns its outputs; inputs may be written by plain ops.
template <class Op>
std::vector<std::vector<double>> call(const Op& op, const typename Op::In& in) {
  Queue queue(1);
  const OpPlan plan = op.plan(in);
  std::vector<Guarded> out, saved;
  std::vector<Tensor> out_views, saved_views;
  for (const Spec& spec : plan.out) out_views.push_back(out.emplace_back(spec, 0).tensor());
  for (const Spec& spec : plan.saved) saved_views.push_back(saved.emplace_back(spec, 0).tensor());
  const Guarded workspace({{static_cast<int64_t>(plan.forward_workspace)}, DType::u8}, 0);
  ref::forward(
      op, {in, to_args<typename Op::Out>(out_views), to_args<typename Op::Saved>(saved_views), workspace.tensor(), &queue});
  std::vector<std::vector<double>> results;
  for (const Guarded& tensor : out) results.push_back(tensor.values());
  return results;
}

}  // namespace fairway::ops_test
