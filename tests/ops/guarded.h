// A tensor with memory of its own between two guard zones: a write outside of it is seen, and until it is filled it holds NaN.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace fairway::ops_test {

class Guarded {
 public:
  Guarded() = default;                 // an absent tensor
  Guarded(Spec spec, int64_t offset);  // `offset` elements past a cache line
  const Tensor& tensor() const { return tensor_; }
  bool intact() const;                          // neither guard zone was touched
  std::vector<double> values() const;           // empty for an absent tensor
  void set(const std::vector<double>& values);  // rounded to the tensor's type
  std::vector<std::byte> bytes() const;

 private:
  std::vector<std::byte> storage_;
  size_t begin_ = 0;
  Tensor tensor_;
};

}  // namespace fairway::ops_test
