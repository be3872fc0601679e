// What the experiments share: tensors on the device with random bf16 values, and a clock.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cuda/context.h"
#include "ops/cuda/elements.cuh"

namespace fairway::lab {

struct Array {
  Tensor tensor;
  cuda::Buffer buffer;
  Array(Shape shape, DType type) : buffer(Spec{shape, type}.bytes()) {
    tensor = make_view(buffer.data(), {shape, type});
    tensor.device = Device::cuda;
    cudaMemset(buffer.data(), 0, buffer.bytes());
  }
  template <class T>
  void set(const std::vector<T>& values) {
    cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  std::vector<float> floats() const {  // of bf16
    std::vector<cuda::bf16> raw(buffer.bytes() / 2);
    cudaMemcpy(raw.data(), buffer.data(), buffer.bytes(), cudaMemcpyDeviceToHost);
    std::vector<float> out(raw.size());
    for (size_t i = 0; i < raw.size(); ++i) out[i] = __bfloat162float(raw[i]);
    return out;
  }
};

struct Lab {
  ThreadPool pool{1};
  cuda::Context context{pool};
  cuda::Context& queue = context;  // work follows in its order

  Array random(Shape shape, unsigned seed, float size = 1) {
    Array out(shape, DType::bf16);
    std::mt19937 generator(seed);
    std::vector<cuda::bf16> values(out.buffer.bytes() / 2);
    for (auto& x : values) x = __float2bfloat16_rn(size * (float(generator() % 65536) / 32768 - 1));
    out.set(values);
    return out;
  }

  // Median seconds of a call, after a second of warming up the clocks.
  template <class Body>
  double time(Body&& body, int rounds = 9, int calls = 20) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<double> seconds;
    for (int round = -5; round < rounds; ++round) {
      cudaEventRecord(begin, context.stream());
      for (int i = 0; i < calls; ++i) body();
      cudaEventRecord(end, context.stream());
      cuda::check(cudaEventSynchronize(end), "timing");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      if (round >= 0) seconds.push_back(ms * 1e-3 / calls);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
};

}  // namespace fairway::lab
