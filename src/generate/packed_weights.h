// A quantized model's weights as generation uses them: the large matrices stay integers with a scale per row, in the tiles of
// ops/cpu/packed_rows.h; everything else becomes floats. The model is still recorded over a ParamStore, so there is one
// definition of it: a matrix that is packed is known by its slot, and a bank of which all is packed has no floats.
#pragma once

#include <map>

#include "autograd/program.h"
#include "base/thread_pool.h"
#include "model/param_store.h"
#include "ops/cpu/packed_rows.h"
#include "quant/quantized_model.h"

namespace fairway {

struct PackedMatrix {
  cpu::PackedRows rows;
  const float* columns = nullptr;  // (cols): what an input is multiplied by first; null: nothing. Equal ones are one
  int64_t rank = 0;                // of a low-rank correction: W = scale⊙Q⊙columns + A·B
  const float* a = nullptr;        // (rows, rank)
  const float* b = nullptr;        // (rank, cols)
};

class PackedWeights {
 public:
  // As read_artifact gives it: complete and of its architecture's shapes. Not needed afterwards.
  PackedWeights(const QuantizedModel& model, ThreadPool& pool);

  // The same in steps. Of the model only places, sizes and codings are read; then each tensor of integers is taken, on any
  // thread, and loses q if that is laid out here; at last everything else of the model.
  explicit PackedWeights(const QuantizedModel& model);
  void take(QuantizedTensor& tensor);
  void finish(const QuantizedModel& model, ThreadPool& pool);

  const ParamStore& params() const { return params_; }
  const PackedMatrix* find(const ParamSlot& weight) const;  // null: its floats are in params()
  size_t bytes() const;                                     // of all packed matrices, each read once for a token
  int64_t most_cols() const { return most_cols_; }          // of a packed matrix

 private:
  void lay_out(const QuantizedTensor& tensor);
  ParamSlot slot_of(const QuantizedTensor& tensor) const;

  ParamStore params_;
  Arena packed_;
  int64_t most_cols_ = 0;
  std::map<ParamSlot, PackedMatrix> matrices_;
  std::vector<std::vector<float>> corrections_;
  std::map<std::vector<int8_t>, std::vector<float>> columns_;  // factors by their classes
};

}  // namespace fairway
