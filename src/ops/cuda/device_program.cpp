#include "ops/cuda/device_program.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cuda/cast.h"

namespace fairway::cuda {
namespace {

constexpr size_t kApartAlignment = 256;

Tensor view_at(std::byte* data, const Spec& spec) {
  Tensor out = make_view(data, spec);
  out.device = Device::cuda;
  return out;
}

}  // namespace

MemoryCopy* MemoryCopies::existing(const Tensor& host) {
  if (host.memory == nullptr) return nullptr;
  const auto at = copies_.find(host.memory->id());
  return at == copies_.end() ? nullptr : &at->second;
}

MemoryCopy& MemoryCopies::copy_of(const Tensor& host) {
  FAIRWAY_ASSERT(host.memory != nullptr, "a program on a device reads memory outside of any arena");
  if (MemoryCopy* copy = existing(host)) return *copy;
  std::erase_if(copies_, [](const auto& entry) { return entry.second.of.expired(); });
  const Memory& memory = *host.memory;
  MemoryCopy& made = copies_[memory.id()];
  made = {memory.weak_from_this(), Buffer(memory.bytes()), {}};
  check(cudaMemcpyAsync(made.data.data(), memory.data(), memory.bytes(), cudaMemcpyHostToDevice, context_->stream()),
        "cudaMemcpyAsync");
  return made;
}

Tensor MemoryCopies::place_in(const MemoryCopy& copy, const Tensor& host) {
  return view_at(copy.data.data() + (host.data - host.memory->data()), host.spec);
}

Tensor MemoryCopies::working_copy(const Tensor& host) {
  MemoryCopy& copy = copy_of(host);
  if (copy.halves.bytes() == 0) copy.halves = Buffer(copy.data.bytes() / 2);
  return view_at(copy.halves.data() + (host.data - host.memory->data()) / 2, {host.spec.shape, DType::bf16});
}

void MemoryCopies::refresh(MemoryCopy& copy) {
  cast_to_bf16(*context_, copy.data.data(), copy.halves.data(), static_cast<int64_t>(copy.data.bytes() / sizeof(float)));
}

DeviceProgram::DeviceProgram(const Recording& recording, Backend backend, Context& context, MemoryCopies& copies,
                             std::shared_ptr<Buffer>& pool)
    : lowered_(lower(recording.program, backend)), copies_(&copies) {
  const Program& p = lowered_.program;
  if (!pool || pool->bytes() < p.arena_bytes) pool = std::make_shared<Buffer>(p.arena_bytes);
  pool_ = pool;
  place_apart(context);
  for (size_t id = 0; id < p.values.size(); ++id) {
    const Value& value = p.values[id];
    if (value.place == Value::Place::apart) continue;
    Tensor& tensor = tensors_[static_cast<int32_t>(id)];
    tensor = value.place == Value::Place::bound ? copies.resident(recording.bindings.at(value.slot))
                                                : view_at(pool_->data() + value.offset, value.spec);
    if (const auto pitch = lowered_.pitches.find(static_cast<int32_t>(id)); pitch != lowered_.pitches.end())
      tensor.pitch = static_cast<int32_t>(pitch->second);
  }
  for (size_t i = 0; i < p.calls.size(); ++i) bind_call(i, recording.bindings);
}

DeviceProgram::~DeviceProgram() {
  if (graph != nullptr) cudaGraphExecDestroy(graph);
}

void DeviceProgram::bind_call(size_t index, const Bindings& bindings) {
  const Program& p = lowered_.program;
  const auto resolve = [&](const std::vector<int32_t>& ids) {
    std::vector<Tensor> out;
    for (int32_t id : ids) out.push_back(tensor(id));
    return out;
  };
  const Call& call = p.calls[index];
  BoundCall b{&call, resolve(call.in), resolve(call.out), resolve(call.saved), resolve(call.dout), resolve(call.din), {}};
  for (size_t k = 0; k < b.din.size(); ++k) b.din[k].accumulate = call.accumulate[k];
  for (size_t k = 0; k < b.in.size(); ++k) {
    if (!lowered_.working.contains({index, k})) continue;
    const Tensor& host = bindings.at(p.value(call.in[k]).slot);
    b.in[k] = copies_->working_copy(host);
    weights_[host.memory->id()] = &copies_->copy_of(host);
  }
  if (call.workspace_bytes > 0)
    b.workspace = view_at(pool_->data() + call.workspace_offset, {{static_cast<int64_t>(call.workspace_bytes)}, DType::u8});
  calls_.push_back(std::move(b));
}

void DeviceProgram::place_apart(Context& context) {
  size_t bytes = 0;
  std::map<int32_t, size_t> offsets;
  const Program& p = lowered_.program;
  for (size_t id = 0; id < p.values.size(); ++id) {
    if (p.values[id].place != Value::Place::apart) continue;
    offsets[static_cast<int32_t>(id)] = bytes;
    bytes += (p.values[id].spec.bytes() + kApartAlignment - 1) / kApartAlignment * kApartAlignment;
  }
  if (bytes == 0) return;
  apart_ = Buffer(bytes);
  check(cudaMemsetAsync(apart_.data(), 0, bytes, context.stream()), "cudaMemsetAsync");
  for (const auto& [id, offset] : offsets) tensors_[id] = view_at(apart_.data() + offset, p.value(id).spec);
}

void DeviceProgram::clear(const Program& recorded, Context& context) const {
  for (size_t id = 0; id < recorded.values.size(); ++id) {
    if (recorded.values[id].place != Value::Place::apart) continue;
    const Tensor state = tensor(static_cast<int32_t>(id));
    check(cudaMemsetAsync(state.data, 0, state.spec.bytes(), context.stream()), "cudaMemsetAsync");
  }
}

Tensor DeviceProgram::tensor(int32_t value) const { return value == kNoValue ? Tensor{} : tensors_.at(value); }

void DeviceProgram::refresh_weights() {
  for (const auto& [memory, copy] : weights_) copies_->refresh(*copy);
}

}  // namespace fairway::cuda
