#include "stages/ranks.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>

#include "backends/backends.h"
#include "base/error.h"
#include "ops/cuda/device.h"

namespace fairway {
namespace {

// The ranks of a machine share its cores; a launcher may have bound this one to fewer.
int threads_of_rank(const Communicator& comm) {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const int allowed = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : hardware_threads();
  return std::max(1, std::min(allowed, hardware_threads() / comm.local_size()));
}

Communicator& communicator_for(const Compute& compute, Carrier carrier) {
  const Backend backend = parse_backend(compute.backend);
  if (backend == Backend::cpu || backend == Backend::ref) {
    if (carrier == Carrier::nccl) throw InputError(fmt::format("--comm nccl: --backend {} has no device", compute.backend));
    return world();
  }
  cuda::use_device(find_launch().local_rank);
  return device_world(carrier, static_cast<int>(cuda::devices().size()));
}

}  // namespace

Communicator& meet_ranks(Compute& compute, const std::string& carrier) {
  Communicator& comm = communicator_for(compute, parse_carrier(carrier));
  if (comm.size() > 1 && compute.threads == 0) compute.threads = threads_of_rank(comm);
  if (!comm.root()) compute.quiet = true;
  return comm;
}

}  // namespace fairway
