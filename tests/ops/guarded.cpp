#include "ops/guarded.h"

#include <algorithm>

#include "base/bf16.h"
#include "base/error.h"
#include "tensor/arena.h"

namespace fairway::ops_test {
namespace {

constexpr size_t kGuardBytes = 128;
constexpr std::byte kGuard{0xA5};
constexpr std::byte kUnwritten{0xFF};  // NaN in f32, f64 and bf16

template <class T>
void copy_in(const Tensor& tensor, const std::vector<double>& values) {
  std::transform(values.begin(), values.end(), tensor.as<T>(), [](double value) { return static_cast<T>(value); });
}

template <class T>
std::vector<double> copy_out(const Tensor& tensor) {
  return {tensor.as<T>(), tensor.as<T>() + tensor.numel()};
}

}  // namespace

Guarded::Guarded(Spec spec, int64_t offset) : storage_(spec.bytes() + 2 * kGuardBytes + 2 * kArenaAlignment, kGuard) {
  const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + kGuardBytes;
  begin_ = kGuardBytes + (align_up(address) - address) + static_cast<size_t>(offset) * size_of(spec.dtype);
  tensor_ = make_view(storage_.data() + begin_, spec);
  std::fill_n(tensor_.data, spec.bytes(), kUnwritten);
}

bool Guarded::intact() const {
  const auto untouched = [](std::byte b) { return b == kGuard; };
  const auto first = storage_.begin() + static_cast<std::ptrdiff_t>(begin_);
  return storage_.empty() ||
         (std::all_of(storage_.begin(), first, untouched) &&
          std::all_of(first + static_cast<std::ptrdiff_t>(tensor_.spec.bytes()), storage_.end(), untouched));
}

std::vector<double> Guarded::values() const {
  if (!tensor_) return {};
  switch (tensor_.spec.dtype) {
    case DType::f32: return copy_out<float>(tensor_);
    case DType::f64: return copy_out<double>(tensor_);
    case DType::bf16: {
      std::vector<double> out;
      const auto* halves = reinterpret_cast<const uint16_t*>(tensor_.data);
      for (int64_t i = 0; i < tensor_.numel(); ++i) out.push_back(static_cast<double>(from_bf16(halves[i])));
      return out;
    }
    default: return copy_out<int32_t>(tensor_);
  }
}

void Guarded::set(const std::vector<double>& values) {
  FAIRWAY_ASSERT(static_cast<int64_t>(values.size()) == tensor_.numel(), "one value for each element");
  switch (tensor_.spec.dtype) {
    case DType::f32: return copy_in<float>(tensor_, values);
    case DType::f64: return copy_in<double>(tensor_, values);
    case DType::bf16:
      std::transform(values.begin(), values.end(), reinterpret_cast<uint16_t*>(tensor_.data),
                     [](double value) { return to_bf16(static_cast<float>(value)); });
      return;
    default: return copy_in<int32_t>(tensor_, values);
  }
}

std::vector<std::byte> Guarded::bytes() const {
  if (!tensor_) return {};
  return {tensor_.data, tensor_.data + tensor_.spec.bytes()};
}

}  // namespace fairway::ops_test
