// Programs and arenas as they lie on a device.
#pragma once

#include <map>

#include "autograd/cuda_lowering.h"
#include "ops/cuda/context.h"

namespace fairway::cuda {

// The device's copy of a host arena, with a bf16 copy of its floats where programs read weights.
struct ArenaCopy {
  Buffer data, halves;
};
// Made, and filled with what the host has, when first asked for. Asserts that the tensor lies in an arena.
ArenaCopy& copy_of(const Tensor& host, Context& context);
ArenaCopy* existing_copy(const Tensor& host);
Tensor on_device(const Tensor& host, const ArenaCopy& copy);

// One program bound to device memory. Planned values lie in a pool that all programs of an executor share.
class DeviceProgram {
 public:
  DeviceProgram(const BoundProgram& bound, Backend backend, Context& context, std::shared_ptr<Buffer>& pool);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  const std::vector<BoundCall>& calls() const { return calls_; }
  Tensor tensor(int32_t value) const;  // on the device
  const Program& program() const { return lowered_.program; }
  void refresh_weights(Context& context) const;  // bf16 copies of the parameters it reads

  cudaGraphExec_t graph = nullptr;
  int64_t runs = 0;

 private:
  void place_kept();
  Tensor working_copy(const Tensor& host, Context& context);

  Lowered lowered_;
  std::shared_ptr<Buffer> pool_;
  Buffer kept_;
  std::map<int32_t, Tensor> tensors_;
  std::vector<BoundCall> calls_;
  std::map<Arena*, ArenaCopy*> weights_;
};

}  // namespace fairway::cuda
