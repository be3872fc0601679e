// Programs and arenas as they lie on a device.
#pragma once

#include <map>

#include "ops/cuda/context.h"
#include "ops/cuda/lowering.h"

namespace fairway::cuda {

// The device's copy of an arena's memory, with a bf16 copy of its floats where programs read weights.
struct MemoryCopy {
  std::weak_ptr<const Memory> of;
  Buffer data, halves;
};

// The copies of one executor. Each is made, and filled with what the host has, when it is first asked for; it goes when room
// is needed and the host's memory is gone.
class MemoryCopies {
 public:
  explicit MemoryCopies(Context& context) : context_(&context) {}
  MemoryCopy& copy_of(const Tensor& host);  // asserts that the tensor lies in an arena
  MemoryCopy* existing(const Tensor& host);
  Tensor resident(const Tensor& host) { return place_in(copy_of(host), host); }
  static Tensor place_in(const MemoryCopy& copy, const Tensor& host);
  Tensor working_copy(const Tensor& host);  // in bf16, filled by refresh()
  void refresh(MemoryCopy& copy);

 private:
  Context* context_;
  std::map<uint64_t, MemoryCopy> copies_;  // by the memory's identity
};

// One program bound to device memory. Planned values lie in a pool that all programs of an executor share.
class DeviceProgram {
 public:
  DeviceProgram(const Recording& recording, Backend backend, Context& context, MemoryCopies& copies,
                std::shared_ptr<Buffer>& pool);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  const std::vector<BoundCall>& calls() const { return calls_; }
  bool rows_alike() const { return lowered_.program.rows_alike; }
  Tensor tensor(int32_t value) const;                           // on the device
  void refresh_weights();                                       // bf16 copies of the parameters it reads
  void clear(const Program& recorded, Context& context) const;  // values that were recorded as apart

  cudaGraphExec_t graph = nullptr;
  int64_t runs = 0;

 private:
  void place_apart(Context& context);
  void bind_call(size_t index, const Bindings& bindings);

  Lowered lowered_;
  MemoryCopies* copies_;
  std::shared_ptr<Buffer> pool_;
  Buffer apart_;
  std::map<int32_t, Tensor> tensors_;
  std::vector<BoundCall> calls_;
  std::map<uint64_t, MemoryCopy*> weights_;
};

}  // namespace fairway::cuda
