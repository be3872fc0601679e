#include "backends/backends.h"

#include "base/error.h"
#include "ops/cuda/device.h"

namespace fairway {

Backend parse_backend(std::string_view name) {
  if (name == "ref") return Backend::ref;
  if (name == "cpu") return Backend::cpu;
  if (name == "cuda" || name == "cuda-f32") {
    if (const cuda::Support& support = cuda::support(); support.usable.empty())
      throw InputError("--backend " + std::string(name) + ": " + support.problem + "; use cpu or ref");
    return name == "cuda" ? Backend::cuda : Backend::cuda_f32;
  }
  throw InputError("--backend " + std::string(name) + ": expected cpu, cuda or ref (cuda-f32: in float)");
}

std::unique_ptr<Executor> make_executor(Backend backend, Queue& queue) {
  switch (backend) {
    case Backend::ref: return make_ref_executor(queue);
    case Backend::cpu: return make_cpu_executor(queue);
    case Backend::cuda:
    case Backend::cuda_f32: break;
  }
  return make_cuda_executor(backend, queue);
}

}  // namespace fairway
