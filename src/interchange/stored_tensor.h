// A tensor as a file holds it: elements of a type at strides in bytes that it shares with others. Whoever makes one has
// checked that all of it lies inside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fairway::interchange {

enum class ElementType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean };
size_t size_of(ElementType type);
std::string_view name_of(ElementType type);
bool is_real(ElementType type);

using Extents = std::vector<int64_t>;
std::string text_of(const Extents& extents);  // "[2, 3]"
int64_t count_of(const Extents& extents);     // of elements; the extents are those of a tensor that exists
Extents dense_strides(const Extents& extents);

struct StoredTensor {
  ElementType type = ElementType::f32;
  Extents shape, strides;  // strides in elements
  std::shared_ptr<const std::string> bytes;
  size_t begin = 0;  // byte of the first element

  int64_t count() const { return count_of(shape); }
};

// Row-major. Of real types.
std::vector<float> floats_of(const StoredTensor& tensor);
std::vector<int8_t> bytes_of(const StoredTensor& tensor);  // of i8

// Names of tensors are printed and go into JSON: InputError unless this is one of at most 256 printable characters.
std::string tensor_name(std::string_view text, const std::string& where);

// InputError unless every extent is at least one: beside a zero the others could be anything.
void require_elements(const Extents& shape, const std::string& tensor, const std::string& where);

// A dense tensor over bytes of its own.
StoredTensor dense_tensor(ElementType type, Extents shape, std::string bytes);

}  // namespace fairway::interchange
