// Stands in for the CUDA executor in builds without CUDA.
#include "autograd/eager.h"
#include "base/error.h"

namespace fairway {

std::unique_ptr<Executor> make_cuda_executor(Backend, Queue&) {
  FAIRWAY_ASSERT(false, "parse_backend refuses cuda in builds without it");
  return nullptr;
}

}  // namespace fairway
