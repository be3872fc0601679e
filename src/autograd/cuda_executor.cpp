// The CUDA executor: a program's first run goes call by call, the second is captured as a graph, later ones replay it.
#include <cstring>

#include "autograd/cuda_program.h"
#include "autograd/cuda_staging.h"
#include "autograd/eager.h"
#include "autograd/eager_executor.h"
#include "autograd/op_table.h"
#include "base/error.h"
#include "ops/cuda/cast.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/device.h"
#include "ops/cuda/library_time.h"
#include "tensor/cuda_spans.h"

namespace fairway {
namespace {

struct Ops {
  static constexpr Backend backend = Backend::cuda;
  template <class Op>
  static void forward(const Op& op, const Forward<Op>& call) {
    cuda::forward(op, call);
  }
  template <class Op>
  static void backward(const Op& op, const Backward<Op>& call) {
    cuda::backward(op, call);
  }
};

const std::string kNoName;

class CudaExecutor : public Executor {
 public:
  CudaExecutor(Backend backend, Queue& queue) : backend_(backend), queue_(&queue), eager_(queue) {
    queue.set_device_context(&context_);
    queue.set_device_executor(this);
  }
  ~CudaExecutor() override {
    if (queue_->device_executor() == this) queue_->set_device_executor(nullptr);
  }

  Backend backend() const override { return backend_; }
  void run_call(const BoundCall& bound) override { staging_.run(bound, eager_, context_); }

  void prepare(const BoundProgram& bound) override { device_program(bound); }

  void run(const BoundProgram& bound) override {
    cuda::DeviceProgram& program = device_program(bound);
    if (capturing_) return run_eagerly(program);
    const std::string& name = bound.program().calls.empty() ? kNoName : bound.program().calls.front().label;
    spans_.begin(name.empty() ? "program" : name, context_.stream());
    if (program.runs++ == 0) {
      run_eagerly(program);
    } else {
      if (program.graph == nullptr) program.graph = capture([&] { run_eagerly(program); });
      cuda::check(cudaGraphLaunch(program.graph, context_.stream()), "cudaGraphLaunch");
    }
    spans_.end(context_.stream());
  }

  void run_told(const BoundProgram& bound, const std::function<void(size_t call)>& after) override {
    cuda::DeviceProgram& program = device_program(bound);
    program.refresh_weights(context_);
    for (size_t i = 0; i < program.calls().size(); ++i) {
      eager_.run_call(program.calls()[i]);
      after(i);
    }
  }

  // Parts of a graph cannot be timed: while a timeline is recorded the sequence runs program by program.
  bool run_sequence(Sequence& sequence, const std::function<void()>& body) override {
    if (sequence.runs++ == 0 || Timeline::active() != nullptr) {
      body();
      return true;
    }
    const bool fresh = !sequence.device_copy;
    if (fresh) {
      const cudaGraphExec_t made = capture(body);
      sequence.device_copy =
          std::shared_ptr<void>(made, [](void* graph) { cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)); });
    }
    cuda::check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(sequence.device_copy.get()), context_.stream()),
                "cudaGraphLaunch");
    return fresh;
  }

  void run(const BoundProgram& bound, const Observer& observer) override {
    cuda::DeviceProgram& program = device_program(bound);
    program.refresh_weights(context_);
    auto point = bound.program().observed.begin();
    for (size_t i = 0; i < program.calls().size(); ++i) {
      eager_.run_call(program.calls()[i]);
      for (; point != bound.program().observed.end() && point->call == i; ++point)
        observer(point->name, fetch(bound, point->value));
    }
  }

  void run_timed(const BoundProgram& bound, std::vector<double>& seconds) override;

  void to_device(const Tensor& host) override {
    const cuda::ArenaCopy* copy = host ? cuda::existing_copy(host) : nullptr;
    if (copy == nullptr) return;  // its first use will take what the host has then
    ring_.send(host.data, cuda::on_device(host, *copy).data, host.spec.bytes(), context_);
  }

  void to_host(const Tensor& host) override {
    const cuda::ArenaCopy* copy = host ? cuda::existing_copy(host) : nullptr;
    if (copy == nullptr) return;
    download(cuda::on_device(host, *copy), host.data);
  }

  Tensor fetch(const BoundProgram& bound, int32_t value) override {
    const cuda::DeviceProgram& program = device_program(bound);
    const Tensor from = program.tensor(value), to = bound.tensor(value);
    if (from.spec.dtype == to.spec.dtype) {
      download(from, to.data);
      return to;
    }
    if (widened_.bytes() < to.spec.bytes()) widened_ = cuda::Buffer(to.spec.bytes());
    cuda::cast_to_float(context_, from.data, widened_.data(), from.numel());
    if (const double cap = cap_of(bound.program(), value); cap > 0)
      cuda::softcap(context_, widened_.data(), from.numel(), static_cast<float>(cap));
    Tensor floats = to;
    floats.data = widened_.data();
    download(floats, to.data);
    return to;
  }

  void deliver(const BoundProgram& bound, int32_t value, Delivery& to) override {
    const Tensor from = device_program(bound).tensor(value);
    FAIRWAY_ASSERT(from.spec.dtype == bound.tensor(value).spec.dtype, "numbers that are delivered have one type everywhere");
    send_back(from, to);
  }
  void deliver(const Tensor& host, Delivery& to) override {
    const cuda::ArenaCopy* copy = cuda::existing_copy(host);
    copy != nullptr ? send_back(cuda::on_device(host, *copy), to) : Executor::deliver(host, to);
  }
  void receive(Delivery& delivery) override {
    if (auto* part = static_cast<cuda::PinnedNumbers*>(delivery.device_part.get())) part->receive(delivery.bytes);
  }

  void wait() override { context_.wait(); }
  Tensor place_of(const Tensor& host) override { return cuda::on_device(host, cuda::copy_of(host, context_)); }
  void* stream() const override { return context_.stream(); }

  double least_bytes(const BoundProgram& bound, size_t call) override {
    return traffic_of(device_program(bound).calls()[call]);
  }
  double library_seconds(const BoundProgram& bound, size_t call) override {
    const BoundCall& c = device_program(bound).calls()[call];
    return cuda::library_seconds(queue_, c.call->op, c.call->backward, {c.in, c.out, c.saved, c.dout, c.din});
  }
  double peak_bytes() const override { return cuda::peak_bytes(); }

 private:
  cuda::DeviceProgram& device_program(const BoundProgram& bound) {
    if (!bound.device_copy()) bound.device_copy() = std::make_shared<cuda::DeviceProgram>(bound, backend_, context_, pool_);
    return *static_cast<cuda::DeviceProgram*>(bound.device_copy().get());
  }

  void run_eagerly(cuda::DeviceProgram& program) {
    program.refresh_weights(context_);
    for (const BoundCall& call : program.calls()) eager_.run_call(call);
  }

  cudaGraphExec_t capture(const std::function<void()>& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    cuda::check(cudaStreamBeginCapture(context_.stream(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    capturing_ = true;
    work();
    capturing_ = false;
    cuda::check(cudaStreamEndCapture(context_.stream(), &graph), "cudaStreamEndCapture");
    cuda::check(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    return made;
  }

  void send_back(const Tensor& from, Delivery& to) {
    if (!to.device_part) to.device_part = std::make_shared<cuda::PinnedNumbers>();
    static_cast<cuda::PinnedNumbers*>(to.device_part.get())->send(from, context_);
  }

  void download(const Tensor& from, std::byte* to) {
    cuda::check(cudaMemcpyAsync(to, from.data, from.spec.bytes(), cudaMemcpyDeviceToHost, context_.stream()),
                "cudaMemcpyAsync");
    context_.wait();
  }

  // bf16 programs keep logits before the softcap (ops/cuda/loss.cu); the host sees them after it. 0: not logits.
  static double cap_of(const Program& program, int32_t value) {
    for (const Call& call : program.calls) {
      const auto* head = std::get_if<SoftcapCrossEntropy>(&call.op);
      if (head != nullptr && !call.backward && call.saved.front() == value) return head->cap;
    }
    return 0;
  }

  Backend backend_;
  Queue* queue_;
  cuda::Context context_;
  EagerExecutor<Ops> eager_;
  cuda::Staging staging_;
  cuda::PinnedRing ring_{size_t{32} << 20};
  std::shared_ptr<cuda::Buffer> pool_;
  cuda::Buffer widened_;  // values on their way to the host
  bool capturing_ = false;
  cuda::StreamSpans spans_{Lane::device};
};

void CudaExecutor::run_timed(const BoundProgram& bound, std::vector<double>& seconds) {
  cuda::DeviceProgram& program = device_program(bound);
  seconds.resize(bound.calls().size());
  std::vector<cudaEvent_t> marks(program.calls().size() + 1);
  for (cudaEvent_t& mark : marks) cuda::check(cudaEventCreate(&mark), "cudaEventCreate");
  program.refresh_weights(context_);
  for (size_t i = 0; i < program.calls().size(); ++i) {
    cuda::check(cudaEventRecord(marks[i], context_.stream()), "cudaEventRecord");
    eager_.run_call(program.calls()[i]);
  }
  cuda::check(cudaEventRecord(marks.back(), context_.stream()), "cudaEventRecord");
  context_.wait();
  for (size_t i = 0; i + 1 < marks.size(); ++i) {
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, marks[i], marks[i + 1]), "cudaEventElapsedTime");
    seconds[i] += static_cast<double>(milliseconds) * 1e-3;
  }
  for (cudaEvent_t mark : marks) cudaEventDestroy(mark);
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(Backend backend, Queue& queue) {
  return std::make_unique<CudaExecutor>(backend, queue);
}

}  // namespace fairway
