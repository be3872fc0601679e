// How kernels read and write: elements are float or bf16 in memory and float in registers, V at a time (16 bytes where the
// tensors allow it). As in ref, an absent tensor reads as zero and swallows what is stored.
#pragma once

#include <cuda_bf16.h>

#include "base/error.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

using bf16 = __nv_bfloat16;

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(bf16 x) { return __bfloat162float(x); }
__device__ inline void assign(float& to, float x) { to = x; }
__device__ inline void assign(bf16& to, float x) { to = __float2bfloat16_rn(x); }

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

template <class T>
struct Source {
  const T* data;
  template <int V>
  __device__ void load(int64_t i, float (&x)[V]) const {
    if (data == nullptr) {
#pragma unroll
      for (int k = 0; k < V; ++k) x[k] = 0;
      return;
    }
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(data + i);
#pragma unroll
    for (int k = 0; k < V; ++k) x[k] = to_float(pack.at[k]);
  }
  // The same as it lies in memory: half the registers while it waits.
  template <int V>
  __device__ Pack<T, V> pack(int64_t i) const {
    Pack<T, V> out;
    if (data != nullptr) return *reinterpret_cast<const Pack<T, V>*>(data + i);
#pragma unroll
    for (int k = 0; k < V; ++k) assign(out.at[k], 0.0f);
    return out;
  }
  __device__ float operator[](int64_t i) const { return data != nullptr ? to_float(data[i]) : 0.0f; }
  __device__ explicit operator bool() const { return data != nullptr; }
};

template <class T>
struct Sink {
  T* data;
  bool add;
  template <int V>
  __device__ void store(int64_t i, const float (&x)[V]) const {
    if (data == nullptr) return;
    auto* place = reinterpret_cast<Pack<T, V>*>(data + i);
    Pack<T, V> pack;
    if (add) pack = *place;
#pragma unroll
    for (int k = 0; k < V; ++k) assign(pack.at[k], add ? to_float(pack.at[k]) + x[k] : x[k]);
    *place = pack;
  }
  __device__ void put(int64_t i, float x) const {
    if (data != nullptr) assign(data[i], add ? to_float(data[i]) + x : x);
  }
};

// Host side: typed views of tensors.
template <class T>
inline constexpr DType kDType = DType::f32;
template <>
inline constexpr DType kDType<bf16> = DType::bf16;
template <>
inline constexpr DType kDType<double> = DType::f64;
template <>
inline constexpr DType kDType<int32_t> = DType::i32;

template <class T>
T* pointer(const Tensor& tensor) {
  if (!tensor) return nullptr;
  if (tensor.spec.dtype != kDType<T>) fail_dtype(tensor.spec.dtype, kDType<T>);
  return reinterpret_cast<T*>(tensor.data);
}
inline int64_t pitch_of(const Tensor& tensor) { return tensor.pitch > 0 ? tensor.pitch : tensor.cols(); }

template <class T>
Source<T> source(const Tensor& tensor) {
  return {pointer<T>(tensor)};
}
template <class T>
Sink<T> sink(const Tensor& tensor) {
  return {pointer<T>(tensor), tensor.accumulate};
}

// Whether rows of `width` elements may be read 16 bytes at a time in every tensor of the argument structs.
template <class Args>
bool vector_args(const Args& args) {
  bool held = true;
  if constexpr (tensor_count < Args >> 0) {
    const auto* tensors = reinterpret_cast<const Tensor*>(&args);
    for (size_t i = 0; i < tensor_count<Args>; ++i) {
      if (tensors[i] && tensors[i].numel() % 8 == 0) held &= reinterpret_cast<uintptr_t>(tensors[i].data) % 16 == 0;
    }
  }
  return held;
}
template <class Op>
bool vectors(const Forward<Op>& f, int64_t width) {
  return width % 8 == 0 && vector_args(f.in) && vector_args(f.out) && vector_args(f.saved);
}
template <class Op>
bool vectors(const Backward<Op>& b, int64_t width) {
  return width % 8 == 0 && vector_args(b.in) && vector_args(b.out) && vector_args(b.saved) && vector_args(b.dout) &&
         vector_args(b.din);
}

// Runs body.operator()<T, V>() for the element type of `like`.
template <class Body>
void with_type(const Tensor& like, bool vectorized, Body&& body) {
  if (like.spec.dtype == DType::bf16) {
    vectorized ? body.template operator()<bf16, 8>() : body.template operator()<bf16, 1>();
  } else {
    vectorized ? body.template operator()<float, 4>() : body.template operator()<float, 1>();
  }
}

inline constexpr int kThreads = 256, kWarps = kThreads / 32;
inline int blocks_for(Context& context, int64_t items, int per_block = kThreads) {
  const int64_t wanted = (items + per_block - 1) / per_block, most = int64_t{8} * context.processors();
  return static_cast<int>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % 32; }
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / 32; }
__device__ inline int64_t warp_index() { return static_cast<int64_t>(blockIdx.x) * kWarps + warp_id(); }

// Σ over L neighbouring lanes, the same order everywhere; every lane of the group gets it.
template <int L>
__device__ float group_sum(float x) {
  const unsigned mask = L == 32 ? ~0u : ((1u << (L % 32)) - 1) << (lane_id() / L * L);
#pragma unroll
  for (int step = L / 2; step > 0; step /= 2) x += __shfl_xor_sync(mask, x, step);
  return x;
}
__device__ inline float warp_sum(float x) { return group_sum<32>(x); }
__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

}  // namespace fairway::cuda
