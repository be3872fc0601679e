// Ops as a plain run in bf16 does them: one primitive after the other, each of whose results is rounded. For those that a
// device does in fewer steps, or inside which it rounds. Sums are made in double.
#pragma once

#include <vector>

#include "ops/all_ops.h"

namespace fairway::ops_test {

double round_bf16(double x);

// A matrix by rows; vectors are one row. Without rows it is absent.
struct Naive {
  int64_t rows = 0, cols = 0;
  std::vector<double> at{};
};
struct NaiveResults {
  std::vector<Naive> out, din;  // gradients as they are before they are added to anything
};

NaiveResults naive_bf16(const QkvProject&, const std::vector<Naive>& in, const std::vector<Naive>& dout);
NaiveResults naive_bf16(const ProjectResidual&, const std::vector<Naive>& in, const std::vector<Naive>& dout);
NaiveResults naive_bf16(const LowRankAdd&, const std::vector<Naive>& in, const std::vector<Naive>& dout);
NaiveResults naive_bf16(const ProjectedEmbed&, const std::vector<Naive>& in, const std::vector<Naive>& dout);
NaiveResults naive_bf16(const Attention&, const std::vector<Naive>& in, const std::vector<Naive>& dout);

template <class Op>
concept HasNaive = requires(const Op& op, const std::vector<Naive>& tensors) {
  naive_bf16(op, tensors, tensors);
};

}  // namespace fairway::ops_test
