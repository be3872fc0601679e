// Second moments of the inputs of every weight, H = (1/B) Σ_batches XᵀX (scoring spec §4.6), keyed by the model's observe
// points. Q, K and V share one; a layer that runs several times adds every pass to the same one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/shape/parameter_row.h"
#include "quant/op_runner.h"

namespace fairway {

struct Hessian {
  int64_t side = 0;            // C
  std::vector<double> values;  // (C, C); symmetric once the store is finished, lower triangle before

  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * side + column)]; }
  double trace() const;
  bool operator==(const Hessian&) const = default;
};

Hessian symmetric(int64_t side, std::vector<double> lower);  // both triangles from the lower one

// The observe point whose vectors are multiplied by this weight; empty when there is none (tables that are only looked up).
std::string hessian_point(const ModelRecipe& model, ParamId bank, int64_t slice);

class HessianStore {
 public:
  explicit HessianStore(OpSite site) : runner_(site) {}

  // rows: f32 (N, C), in any number of calls. Points that no weight reads are ignored, so that an observer may pass on all.
  void accumulate(std::string_view point, const Tensor& rows);
  // Sums that were made elsewhere, (C, C), their lower triangle filled.
  void add_sums(std::string_view point, int64_t side, std::span<const double> sums);
  void end_batch() { batches_ += 1; }
  // What was gathered so far counts `keep` times as much as what follows: for sums over a whole training run.
  void forget(double keep);
  void add(const HessianStore& other);  // both unfinished: their sums and batches together
  double batches() const { return batches_; }
  void set_batches(double batches) { batches_ = batches; }  // of sums that were put back from a file
  bool empty() const { return hessians_.empty(); }

  // Means over batches, both triangles filled. Hessians that cannot be used (not finite, empty diagonal, negative diagonal) are
  // dropped; a sentence about each is returned. Nothing may be accumulated afterwards.
  std::vector<std::string> finish();

  const Hessian* find(std::string_view point) const;                           // null when absent
  void put(std::string_view point, int64_t side, std::vector<double> values);  // finished: for tests and files
  const std::map<std::string, Hessian, std::less<>>& all() const { return hessians_; }

 private:
  OpRunner runner_;
  std::map<std::string, Hessian, std::less<>> hessians_;
  double batches_ = 0;
  bool finished_ = false;
};

}  // namespace fairway
