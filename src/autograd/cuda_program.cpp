#include "autograd/cuda_program.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cuda/cast.h"

namespace fairway::cuda {
namespace {

Tensor view_at(std::byte* data, const Spec& spec) {
  Tensor out = make_view(data, spec);
  out.device = Device::cuda;
  out.pitch = 0;
  return out;
}

}  // namespace

ArenaCopy* existing_copy(const Tensor& host) {
  Arena* arena = Arena::containing(host.data);
  return arena != nullptr ? static_cast<ArenaCopy*>(arena->device_copy().get()) : nullptr;
}

ArenaCopy& copy_of(const Tensor& host, Context& context) {
  Arena* arena = Arena::containing(host.data);
  FAIRWAY_ASSERT(arena != nullptr, "a program on a device reads memory outside of any arena");
  if (!arena->device_copy()) {
    auto made = std::make_shared<ArenaCopy>(ArenaCopy{Buffer(arena->capacity()), {}});
    if (arena->filled() == Arena::Filled::by_programs)
      check(cudaMemsetAsync(made->data.data(), 0, arena->capacity(), context.stream()), "cudaMemsetAsync");
    else
      check(cudaMemcpyAsync(made->data.data(), arena->base(), arena->capacity(), cudaMemcpyHostToDevice, context.stream()),
            "cudaMemcpyAsync");
    arena->device_copy() = made;
  }
  return *static_cast<ArenaCopy*>(arena->device_copy().get());
}

Tensor on_device(const Tensor& host, const ArenaCopy& copy) {
  Tensor out = host;
  out.pitch = 0;
  out.data = copy.data.data() + (host.data - Arena::containing(host.data)->base());
  out.device = Device::cuda;
  return out;
}

DeviceProgram::DeviceProgram(const BoundProgram& bound, Backend backend, Context& context, std::shared_ptr<Buffer>& pool)
    : lowered_(lower(bound.program(), backend)) {
  const Program& p = lowered_.program;
  if (!pool || pool->bytes() < p.arena_bytes) pool = std::make_shared<Buffer>(p.arena_bytes);
  pool_ = pool;
  place_kept();
  for (size_t id = 0; id < p.values.size(); ++id) {
    const Value& value = p.values[id];
    if (tensors_.contains(static_cast<int32_t>(id))) continue;
    tensors_[static_cast<int32_t>(id)] = value.external ? on_device(value.external, copy_of(value.external, context))
                                                        : view_at(pool_->data() + value.offset, value.spec);
    if (const auto pitch = lowered_.pitches.find(static_cast<int32_t>(id)); pitch != lowered_.pitches.end())
      tensors_[static_cast<int32_t>(id)].pitch = static_cast<int32_t>(pitch->second);
  }
  const auto resolve = [&](const std::vector<int32_t>& ids) {
    std::vector<Tensor> out;
    for (int32_t id : ids) out.push_back(tensor(id));
    return out;
  };
  for (size_t i = 0; i < p.calls.size(); ++i) {
    const Call& call = p.calls[i];
    BoundCall b{&call, resolve(call.in), resolve(call.out), resolve(call.saved), resolve(call.dout), resolve(call.din), {}};
    for (size_t k = 0; k < b.din.size(); ++k) b.din[k].accumulate = call.accumulate[k];
    for (size_t k = 0; k < b.in.size(); ++k) {
      if (lowered_.working.contains({i, k}))
        b.in[k] = working_copy(p.values[static_cast<size_t>(call.in[k])].external, context);
    }
    if (call.workspace_bytes > 0) {
      b.workspace = view_at(pool_->data() + call.workspace_offset, {{static_cast<int64_t>(call.workspace_bytes)}, DType::u8});
    }
    calls_.push_back(std::move(b));
  }
}

DeviceProgram::~DeviceProgram() {
  if (graph != nullptr) cudaGraphExecDestroy(graph);
}

void DeviceProgram::place_kept() {
  size_t bytes = 0;
  std::map<int32_t, size_t> offsets;
  const Program& p = lowered_.program;
  for (size_t id = 0; id < p.values.size(); ++id) {
    const Value& value = p.values[id];
    if (!value.external || value.external.data != nullptr) continue;
    offsets[static_cast<int32_t>(id)] = bytes;
    bytes += (value.spec.bytes() + 255) / 256 * 256;
  }
  kept_ = Buffer(bytes);
  for (const auto& [id, offset] : offsets)
    tensors_[id] = view_at(kept_.data() + offset, p.values[static_cast<size_t>(id)].spec);
}

Tensor DeviceProgram::working_copy(const Tensor& host, Context& context) {
  Arena* arena = Arena::containing(host.data);
  ArenaCopy& copy = copy_of(host, context);
  if (copy.halves.bytes() == 0) copy.halves = Buffer(arena->capacity() / 2);
  weights_[arena] = &copy;
  Tensor out = host;
  out.pitch = 0;
  out.spec.dtype = DType::bf16;
  out.data = copy.halves.data() + (host.data - arena->base()) / 2;
  out.device = Device::cuda;
  return out;
}

Tensor DeviceProgram::tensor(int32_t value) const { return value == kNoValue ? Tensor{} : tensors_.at(value); }

void DeviceProgram::refresh_weights(Context& context) const {
  for (const auto& [arena, copy] : weights_) {
    cast_to_bf16(context, copy->data.data(), copy->halves.data(), static_cast<int64_t>(copy->data.bytes() / sizeof(float)));
  }
}

}  // namespace fairway::cuda
