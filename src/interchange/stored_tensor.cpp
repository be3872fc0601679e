#include "interchange/stored_tensor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/bf16.h"
#include "base/error.h"
#include "base/half.h"

namespace fairway::interchange {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  size_t bytes;
  bool real;
};
constexpr std::array<TypeRow, 10> kElementTypes{{{ElementType::f32, "f32", 4, true},
                                                 {ElementType::f64, "f64", 8, true},
                                                 {ElementType::f16, "f16", 2, true},
                                                 {ElementType::bf16, "bf16", 2, true},
                                                 {ElementType::i8, "i8", 1, false},
                                                 {ElementType::u8, "u8", 1, false},
                                                 {ElementType::i16, "i16", 2, false},
                                                 {ElementType::i32, "i32", 4, false},
                                                 {ElementType::i64, "i64", 8, false},
                                                 {ElementType::boolean, "bool", 1, false}}};
const TypeRow& type_row(ElementType type) { return kElementTypes[static_cast<size_t>(type)]; }

template <class T>
T load(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float real_at(const char* at, ElementType type) {
  switch (type) {
    case ElementType::f64: return static_cast<float>(load<double>(at));
    case ElementType::f16: return from_half(load<uint16_t>(at));
    case ElementType::bf16: return from_bf16(load<uint16_t>(at));
    default: return load<float>(at);
  }
}

// Calls take(address) for every element in row-major order.
template <class Take>
void walk(const StoredTensor& tensor, const Take& take) {
  const char* first = tensor.bytes->data() + tensor.begin;
  const auto size = static_cast<int64_t>(size_of(tensor.type));
  const size_t axes = tensor.shape.size();
  Extents place(axes, 0);
  int64_t at = 0;
  for (int64_t left = tensor.count(); left > 0; --left) {
    take(first + at * size);
    for (size_t axis = axes; axis-- > 0;) {
      at += tensor.strides[axis];
      if (++place[axis] < tensor.shape[axis]) break;
      at -= tensor.strides[axis] * tensor.shape[axis];
      place[axis] = 0;
    }
  }
}

}  // namespace

size_t size_of(ElementType type) { return type_row(type).bytes; }
std::string_view name_of(ElementType type) { return type_row(type).name; }
bool is_real(ElementType type) { return type_row(type).real; }

std::string text_of(const Extents& extents) {
  std::string text = "[";
  for (const int64_t extent : extents) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

int64_t count_of(const Extents& extents) {
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  return count;
}

Extents dense_strides(const Extents& extents) {
  Extents strides(extents.size(), 1);
  for (size_t axis = extents.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * extents[axis];
  return strides;
}

std::vector<float> floats_of(const StoredTensor& tensor) {
  FAIRWAY_ASSERT(is_real(tensor.type), "a tensor of whole numbers was asked for floats");
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  if (tensor.type == ElementType::f32 && tensor.strides == dense_strides(tensor.shape)) {
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes->data() + tensor.begin, values.size() * sizeof(float));
    return values;
  }
  float* out = values.data();
  walk(tensor, [&](const char* at) { *out++ = real_at(at, tensor.type); });
  return values;
}

std::vector<int8_t> bytes_of(const StoredTensor& tensor) {
  FAIRWAY_ASSERT(tensor.type == ElementType::i8, "a tensor of another type was asked for int8");
  std::vector<int8_t> values(static_cast<size_t>(tensor.count()));
  int8_t* out = values.data();
  walk(tensor, [&](const char* at) { *out++ = load<int8_t>(at); });
  return values;
}

std::string tensor_name(std::string_view text, const std::string& where) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (text.empty() || text.size() > 256 || !plain)
    throw InputError(where + ": holds a tensor whose name is empty, longer than 256 characters or not printable");
  return std::string(text);
}

void require_elements(const Extents& shape, const std::string& tensor, const std::string& where) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw InputError(where + ": " + tensor + " " + text_of(shape) + " has no elements; expected at least one");
}

StoredTensor dense_tensor(ElementType type, Extents shape, std::string bytes) {
  Extents strides = dense_strides(shape);
  return {type, std::move(shape), std::move(strides), std::make_shared<const std::string>(std::move(bytes)), 0};
}

}  // namespace fairway::interchange
