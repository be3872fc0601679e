#include "ops/cuda/executor.h"

#include "ops/cuda/device.h"
#include "ops/cuda/session.h"

namespace fairway {
namespace {

// First of the bases, so that the queue is there before the executor that works in its order.
struct OwnWorkshop {
  cuda::Workshop shop;
};

class CudaExecutor final : private OwnWorkshop, public Executor {
 public:
  CudaExecutor(Backend backend, Queue& host) : OwnWorkshop{cuda::Workshop(backend, host.pool())}, Executor(shop.context) {}

  Backend backend() const override { return shop.backend; }
  std::unique_ptr<Session> open(Recording recording, Arena*) override {
    return std::make_unique<cuda::DeviceSession>(std::move(recording), shop);
  }
  std::unique_ptr<Sequence> open_sequence() override { return std::make_unique<cuda::DeviceSequence>(shop); }
  std::unique_ptr<Delivery> open_delivery() override { return std::make_unique<cuda::DeviceDelivery>(); }
  void run_call(const BoundCall& bound) override {
    staging_.run(
        bound, [&](const BoundCall& on_device) { shop.run_call(on_device); }, shop.context);
  }

  void upload(const Tensor& host) override { send(host.data, host); }
  void fill(const Tensor& input, const Tensor& from) override {
    if (!send(from.data, input)) Executor::fill(input, from);
  }
  void download(const Tensor& host) override {
    if (const cuda::MemoryCopy* copy = shop.copies.existing(host))
      shop.download(cuda::MemoryCopies::place_in(*copy, host), host.data);
  }
  Tensor resident(const Tensor& host) override { return shop.copies.resident(host); }
  void wait() override { shop.context.wait(); }
  size_t free_bytes() override {
    size_t free = 0, all = 0;
    cuda::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
    return free;
  }
  int devices() const override { return static_cast<int>(cuda::devices().size()); }

 private:
  // False where the device has no copy yet: its first use will take what the host has then.
  bool send(const std::byte* from, const Tensor& host) {
    const cuda::MemoryCopy* copy = shop.copies.existing(host);
    if (copy == nullptr) return false;
    ring_.send(from, cuda::MemoryCopies::place_in(*copy, host).data, host.spec.bytes(), shop.context);
    return true;
  }

  cuda::Staging staging_;
  cuda::PinnedRing ring_{size_t{32} << 20};
};

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(Backend backend, Queue& queue) {
  return std::make_unique<CudaExecutor>(backend, queue);
}

}  // namespace fairway
