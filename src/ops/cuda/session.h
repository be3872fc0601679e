// A program opened on a device: its first run goes call by call, the second is captured as a graph, later ones replay it.
#pragma once

#include "autograd/eager_executor.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/device_program.h"
#include "ops/cuda/staging.h"
#include "tensor/cuda_spans.h"

namespace fairway::cuda {

struct Ops {
  template <class Op>
  static void forward(const Op& op, const Forward<Op>& call) {
    cuda::forward(op, call);
  }
  template <class Op>
  static void backward(const Op& op, const Backward<Op>& call) {
    cuda::backward(op, call);
  }
};

// What the sessions of one executor share.
struct Workshop {
  Workshop(Backend chosen, ThreadPool& threads) : backend(chosen), context(threads), run_call(context), copies(context) {}
  Backend backend;
  Context context;
  CallRunner<Ops> run_call;
  MemoryCopies copies;
  std::shared_ptr<Buffer> pool;  // of planned values
  Buffer widened;                // values on their way to the host
  PinnedLanding landing;
  bool capturing = false;
  StreamSpans spans{Lane::device};

  cudaGraphExec_t capture(const std::function<void()>& work);
  void download(const Tensor& from, std::byte* to);  // waits
};

class DeviceSession final : public Session {
 public:
  DeviceSession(Recording recording, Workshop& workshop) : Session(std::move(recording)), shop_(&workshop) {}

  void prepare() override { program_on_device(); }
  void run() override;
  using Session::run;
  void run_told(const std::function<void(size_t call)>& after) override;
  void run_timed(std::vector<double>& seconds) override;
  Tensor fetch(int32_t value) override;
  Tensor fetched(int32_t value) const override { return landed_.at(value).all; }
  void deliver(int32_t value, Delivery& to) override;
  const std::vector<BoundCall>& calls() override { return program_on_device().calls(); }
  void clear_state() override;

 private:
  struct Landing {  // on the host
    std::unique_ptr<Arena> memory;
    Tensor all;
  };
  DeviceProgram& program_on_device();  // made when it is first needed: the host fills its memory before that
  void begin(DeviceProgram& program);  // what a run does before its calls
  void run_eagerly(DeviceProgram& program);
  Tensor landing_of(int32_t value);

  Workshop* shop_;
  std::unique_ptr<DeviceProgram> device_;
  std::map<int32_t, Landing> landed_;  // values that are kept or apart
  Landing told_;                       // the observed value that was fetched last
};

class DeviceSequence final : public Sequence {
 public:
  explicit DeviceSequence(Workshop& workshop) : shop_(&workshop) {}
  ~DeviceSequence() override;
  bool run(const std::function<void()>& body) override;

 private:
  Workshop* shop_;
  int64_t runs_ = 0;
  cudaGraphExec_t graph_ = nullptr;
};

class DeviceDelivery final : public Delivery {
 public:
  void send(const Tensor& from, Context& context) {
    make_room(from.spec.bytes());
    numbers_.send(from, context);
  }
  void receive() override { numbers_.receive(bytes()); }

 private:
  PinnedNumbers numbers_;
};

}  // namespace fairway::cuda
