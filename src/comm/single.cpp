// One process: nothing travels, pieces are copied at once.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "comm/communicator.h"

namespace fairway {
namespace {

class Single final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void progress() override {}
  void end_all(const std::string& sentence, int status) override {
    std::fprintf(stderr, "%s\n", sentence.c_str());
    std::exit(status);
  }

 private:
  void do_barrier() override {}
  void do_broadcast(const Tensor&, int) override {}
  void do_all_reduce(std::span<double>) override {}
  Request do_start_exchange(const Tensor& full, const Tensor& received) override { return copy(full, received); }
  Request do_start_all_gather(const Tensor& shard, const Tensor& full) override { return copy(shard, full); }
  Request do_start_gather(const Tensor& part, const Tensor& all, int64_t, int) override { return copy(part, all); }
  void do_wait(Request) override {}
  static Request copy(const Tensor& from, const Tensor& to) {
    if (from.data != to.data) std::memcpy(to.data, from.data, from.spec.bytes());
    return 0;
  }
};

}  // namespace

Communicator& single_process() {
  static Single single;
  return single;
}

}  // namespace fairway
