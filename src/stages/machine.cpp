#include "stages/machine.h"

#include "backends/backends.h"
#include "ops/cuda/device.h"

namespace fairway {

const std::string& default_backend() {
  static const std::string name = cuda::devices().empty() ? "cpu" : "cuda";
  return name;
}

Machine::Machine(const Compute& compute)
    : queue(compute.threads == 0 ? hardware_threads() : compute.threads),
      executor(make_executor(parse_backend(compute.backend), queue)) {}

}  // namespace fairway
