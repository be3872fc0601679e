// Small arithmetic of blocked loops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fairway::cpu {

constexpr size_t kCacheLine = 64;  // bytes
constexpr int64_t kLineFloats = kCacheLine / sizeof(float);

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The next address on a cache line.
template <class T>
T* align(void* p) {
  return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(p) + kCacheLine - 1) & ~uintptr_t{kCacheLine - 1});
}

}  // namespace fairway::cpu
