// Dense, row-major tensors as views: a tensor never allocates and never frees, its memory belongs to an Arena.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace fairway {

enum class DType : uint8_t { f32, f64, bf16, i32, u16, u8 };
enum class Device : uint8_t { cpu, cuda };

size_t size_of(DType);
const char* name_of(DType);

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};

struct Shape {
  std::array<int64_t, 4> dims{};
  uint8_t rank = 0;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  int64_t operator[](int axis) const { return dims[static_cast<size_t>(axis)]; }
  int64_t numel() const;
  int64_t last() const { return rank == 0 ? 1 : dims[rank - 1U]; }
  int64_t rows() const { return last() == 0 ? 0 : numel() / last(); }  // all axes but the last, flattened
  bool operator==(const Shape&) const = default;
  std::string text() const;  // "[2, 3]"
};

struct Spec {
  Shape shape;
  DType dtype = DType::f32;
  size_t bytes() const { return static_cast<size_t>(shape.numel()) * size_of(dtype); }
  bool operator==(const Spec&) const = default;
};

[[noreturn]] void fail_dtype(DType have, DType want);

class Memory;  // tensor/arena.h

struct Tensor {
  std::byte* data = nullptr;
  Spec spec;
  Device device = Device::cpu;
  bool present = false;            // an optional argument that is absent has present == false (plans have no data yet)
  bool accumulate = false;         // of a gradient: the writer adds to what is there instead of replacing it
  int32_t pitch = 0;               // elements between rows where a device keeps several tensors side by side; 0: dense
  const Memory* memory = nullptr;  // of the arena it was made in; null where it lies in memory of somebody else

  explicit operator bool() const { return present; }
  int64_t dim(int axis) const { return spec.shape[axis]; }
  int64_t numel() const { return spec.shape.numel(); }
  int64_t rows() const { return spec.shape.rows(); }
  int64_t cols() const { return spec.shape.last(); }

  template <class T>
  T* as() const {
    if (spec.dtype != DTypeOf<T>::value) fail_dtype(spec.dtype, DTypeOf<T>::value);
    return reinterpret_cast<T*>(data);
  }
  Tensor slice(int64_t index) const;              // element `index` of the first axis, one rank lower
  Tensor reshaped(Shape shape) const;             // the same elements under another shape
  Tensor part(int64_t first, Shape shape) const;  // elements from `first` on, counted over all axes
};

Tensor make_view(void* data, Spec spec);

}  // namespace fairway
