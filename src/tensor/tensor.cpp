#include "tensor/tensor.h"

#include "base/error.h"

namespace fairway {

size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::bf16:
    case DType::u16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::u16: return "u16";
    case DType::u8: return "u8";
  }
  return "?";
}

Shape::Shape(std::initializer_list<int64_t> sizes) {
  FAIRWAY_ASSERT(sizes.size() <= dims.size(), "a tensor has at most four axes");
  for (int64_t size : sizes) dims[rank++] = size;
}

int64_t Shape::numel() const {
  int64_t n = 1;
  for (uint8_t axis = 0; axis < rank; ++axis) n *= dims[axis];
  return n;
}

std::string Shape::text() const {
  std::string out = "[";
  for (uint8_t axis = 0; axis < rank; ++axis) out += (axis ? ", " : "") + std::to_string(dims[axis]);
  return out + "]";
}

void fail_dtype(DType have, DType want) {
  fail_invariant(__FILE__, __LINE__, "dtype", std::string("tensor is ") + name_of(have) + ", asked for as " + name_of(want));
}

Tensor Tensor::slice(int64_t index) const {
  FAIRWAY_ASSERT(spec.shape.rank > 0 && index >= 0 && index < dim(0), "slice outside of the first axis");
  Tensor out = *this;
  out.spec.shape.rank = static_cast<uint8_t>(spec.shape.rank - 1);
  for (uint8_t axis = 0; axis < 4; ++axis)
    out.spec.shape.dims[axis] = axis + 1 < spec.shape.rank ? spec.shape.dims[axis + 1U] : 0;
  if (out.spec.shape.rank == 0) out.spec.shape = Shape{1};
  out.data = data == nullptr ? nullptr : data + static_cast<size_t>(index) * out.spec.bytes();
  return out;
}

Tensor Tensor::reshaped(Shape shape) const {
  FAIRWAY_ASSERT(shape.numel() == numel(), "reshape changes the number of elements");
  Tensor out = *this;
  out.spec.shape = shape;
  return out;
}

Tensor Tensor::part(int64_t first, Shape shape) const {
  FAIRWAY_ASSERT(first >= 0 && first + shape.numel() <= numel(), "a part outside of its tensor");
  Tensor out = *this;
  out.spec.shape = shape;
  out.data = data == nullptr ? nullptr : data + static_cast<size_t>(first) * size_of(spec.dtype);
  return out;
}

Tensor make_view(void* data, Spec spec) {
  Tensor out;
  out.data = static_cast<std::byte*>(data);
  out.spec = spec;
  out.present = true;
  return out;
}

}  // namespace fairway
