// The model's parameters: one tensor per kind with all layers stacked, values in one flat arena and gradients in another, so
// that clipping, averaging, saving and reducing are each one pass.
#pragma once

#include <set>
#include <vector>

#include "model/shape/model_shape.h"
#include "tensor/arena.h"

namespace fairway {

struct ParamBank {
  ParamInfo info;
  Tensor value;
  Tensor grad;         // absent in a store without gradients
  int32_t number = 0;  // in its store
  int64_t offset = 0;  // of its first element in the flat tensors
};

class ParamStore {
 public:
  enum class Gradients : uint8_t { none, kept };
  // Of the banks named in `elsewhere` somebody else has the values: here they have no memory.
  ParamStore(const std::vector<ParamInfo>& table, Gradients, DType real = DType::f32, const std::set<ParamId>& elsewhere = {});

  const std::vector<ParamBank>& banks() const { return banks_; }
  bool has(ParamId id) const;
  const ParamBank& bank(ParamId id) const;    // asserts that it exists
  const ParamBank& bank(AdapterId id) const;  // likewise
  // Everything at once, including the zero padding between banks.
  Tensor flat_values() const { return flat_values_; }
  Tensor flat_grads() const { return flat_grads_; }
  void set_values(const Tensor& flat);  // laid out as flat_values(); asserts that it has its size
  std::vector<ParamInfo> table() const;

 private:
  Arena values_;
  Arena grads_;
  std::vector<ParamBank> banks_;
  Tensor flat_values_, flat_grads_;
};

Shape shape_of(const ParamInfo&);  // a scalar is [1]

}  // namespace fairway
