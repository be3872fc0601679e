// How the reference ops read and write: every element is read as a double, every result is rounded once when it is stored.
#pragma once

#include <algorithm>

#include "base/bf16.h"
#include "base/error.h"
#include "ops/op.h"

namespace fairway::ref {

// Runs body.operator()<T>() for the float type of a tensor; f64 serves the gradient checks. bf16 is read as float.
template <class Body>
void with_dtype(const Tensor& like, Body&& body) {
  if (like.spec.dtype == DType::f64)
    body.template operator()<double>();
  else
    body.template operator()<float>();  // as<float>() refuses every other type
}

template <class T>
class Values {  // an absent tensor reads as zero, and what ranks exchange may be bf16
 public:
  explicit Values(const Tensor& tensor) {
    if (tensor && tensor.spec.dtype == DType::bf16)
      bf16_ = reinterpret_cast<const uint16_t*>(tensor.data);
    else if (tensor)
      data_ = tensor.as<T>();
  }
  double operator[](int64_t i) const {
    if (bf16_) return static_cast<double>(from_bf16(bf16_[i]));
    return data_ ? static_cast<double>(data_[i]) : 0.0;
  }

 private:
  const T* data_ = nullptr;
  const uint16_t* bf16_ = nullptr;
};

template <class T>
class Target {  // an absent tensor swallows what is put
 public:
  explicit Target(const Tensor& tensor) : data_(tensor ? tensor.as<T>() : nullptr), accumulate_(tensor.accumulate) {}
  explicit operator bool() const { return data_ != nullptr; }
  void put(int64_t i, double value) const {
    if (data_) data_[i] = static_cast<T>(accumulate_ ? static_cast<double>(data_[i]) + value : value);
  }

 private:
  T* data_;
  bool accumulate_;
};

// A table's gradient, to be added to row by row: zeroed first unless it accumulates.
template <class T>
Target<T> scatter_target(Tensor table) {
  if (table && !table.accumulate) std::fill_n(table.as<T>(), table.numel(), T{0});
  table.accumulate = true;
  return Target<T>(table);
}

template <class Term>
double sum(int64_t count, Term&& term) {  // Σ term(i), in order
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += term(i);
  return total;
}

// `count` zeros at the start of a workspace.
inline double* zeros(const Tensor& workspace, int64_t count) {
  FAIRWAY_ASSERT(count == 0 || (workspace && workspace.spec.bytes() >= static_cast<size_t>(count) * sizeof(double)),
                 "the workspace is smaller than the plan's");
  double* out = reinterpret_cast<double*>(workspace.data);
  std::fill_n(out, count, 0.0);
  return out;
}

double sigmoid(double x);

}  // namespace fairway::ref
