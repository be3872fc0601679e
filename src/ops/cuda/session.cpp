#include "ops/cuda/session.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cuda/cast.h"

namespace fairway::cuda {
namespace {

// bf16 programs keep logits before the softcap (softcap_cross_entropy.cu); the host sees them after it. 0: not logits.
double cap_of(const Program& program, int32_t value) {
  for (const Call& call : program.calls) {
    const auto* head = std::get_if<SoftcapCrossEntropy>(&call.op);
    if (head == nullptr || call.backward) continue;
    if (by_name<SoftcapCrossEntropy::SavedOf>(call.saved).logits == value) return head->cap;
  }
  return 0;
}

}  // namespace

cudaGraphExec_t Workshop::capture(const std::function<void()>& work) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  check(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  capturing = true;
  work();
  capturing = false;
  check(cudaStreamEndCapture(context.stream(), &graph), "cudaStreamEndCapture");
  check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(graph);
  return made;
}

void Workshop::download(const Tensor& from, std::byte* to) {
  if (from.spec.bytes() >= PinnedLanding::kLeast) return landing.receive(from.data, to, from.spec.bytes(), context);
  check(cudaMemcpyAsync(to, from.data, from.spec.bytes(), cudaMemcpyDeviceToHost, context.stream()), "cudaMemcpyAsync");
  check_waited(cudaStreamSynchronize(context.stream()), "cudaStreamSynchronize");
}

DeviceProgram& DeviceSession::program_on_device() {
  if (!device_)
    device_ = std::make_unique<DeviceProgram>(recording(), shop_->backend, shop_->context, shop_->copies, shop_->pool);
  return *device_;
}

void DeviceSession::begin(DeviceProgram& on_device) {
  shop_->context.keep_rows_alike(on_device.rows_alike());
  on_device.refresh_weights();
}

void DeviceSession::run_eagerly(DeviceProgram& on_device) {
  begin(on_device);
  for (const BoundCall& call : on_device.calls()) shop_->run_call(call);
}

void DeviceSession::run() {
  DeviceProgram& on_device = program_on_device();
  if (shop_->capturing) return run_eagerly(on_device);
  const cudaStream_t stream = shop_->context.stream();
  const std::string name = program().calls.empty() ? std::string() : program().calls.front().label;
  shop_->spans.begin(name.empty() ? "program" : name, stream);
  if (on_device.runs++ == 0) {
    run_eagerly(on_device);
  } else {
    if (on_device.graph == nullptr) on_device.graph = shop_->capture([&] { run_eagerly(on_device); });
    check(cudaGraphLaunch(on_device.graph, stream), "cudaGraphLaunch");
  }
  shop_->spans.end(stream);
}

void DeviceSession::run_told(const std::function<void(size_t call)>& after) {
  DeviceProgram& on_device = program_on_device();
  begin(on_device);
  for (size_t i = 0; i < on_device.calls().size(); ++i) {
    shop_->run_call(on_device.calls()[i]);
    after(i);
  }
}

void DeviceSession::run_timed(std::vector<double>& seconds) {
  DeviceProgram& on_device = program_on_device();
  const cudaStream_t stream = shop_->context.stream();
  seconds.resize(on_device.calls().size());
  std::vector<cudaEvent_t> marks(on_device.calls().size() + 1);
  for (cudaEvent_t& mark : marks) check(cudaEventCreate(&mark), "cudaEventCreate");
  begin(on_device);
  for (size_t i = 0; i < on_device.calls().size(); ++i) {
    check(cudaEventRecord(marks[i], stream), "cudaEventRecord");
    shop_->run_call(on_device.calls()[i]);
  }
  check(cudaEventRecord(marks.back(), stream), "cudaEventRecord");
  shop_->context.wait();
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, marks[i], marks[i + 1]), "cudaEventElapsedTime");
    seconds[i] += static_cast<double>(milliseconds) * 1e-3;
  }
  for (cudaEvent_t mark : marks) cudaEventDestroy(mark);
}

Tensor DeviceSession::landing_of(int32_t value) {
  const Spec& spec = program().value(value).spec;
  const bool stays = std::ranges::count(program().kept, value) > 0 || program().value(value).place == Value::Place::apart;
  Landing& landing = stays ? landed_[value] : told_;
  if (!landing.memory || landing.memory->capacity() < spec.bytes())
    landing.memory = std::make_unique<Arena>("from the device", spec.bytes());
  return landing.all = landing.memory->at(0, spec);
}

Tensor DeviceSession::fetch(int32_t value) {
  const Tensor from = program_on_device().tensor(value), to = landing_of(value);
  if (from.spec.dtype == to.spec.dtype) {
    shop_->download(from, to.data);
    return to;
  }
  if (shop_->widened.bytes() < to.spec.bytes()) shop_->widened = Buffer(to.spec.bytes());
  cast_to_float(shop_->context, from.data, shop_->widened.data(), from.numel());
  if (const double cap = cap_of(program(), value); cap > 0)
    softcap(shop_->context, shop_->widened.data(), from.numel(), static_cast<float>(cap));
  Tensor floats = to;
  floats.data = shop_->widened.data();
  shop_->download(floats, to.data);
  return to;
}

void DeviceSession::deliver(int32_t value, Delivery& to) {
  const Tensor from = program_on_device().tensor(value);
  FAIRWAY_ASSERT(from.spec.dtype == program().value(value).spec.dtype, "numbers that are delivered have one type everywhere");
  static_cast<DeviceDelivery&>(to).send(from, shop_->context);
}

void DeviceSession::clear_state() { program_on_device().clear(program(), shop_->context); }

DeviceSequence::~DeviceSequence() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

// Parts of a graph cannot be timed: while a timeline is recorded the sequence runs program by program.
bool DeviceSequence::run(const std::function<void()>& body) {
  if (runs_++ == 0 || Timeline::active() != nullptr) {
    body();
    return true;
  }
  const bool fresh = graph_ == nullptr;
  if (fresh) graph_ = shop_->capture(body);
  check(cudaGraphLaunch(graph_, shop_->context.stream()), "cudaGraphLaunch");
  return fresh;
}

}  // namespace fairway::cuda
