// One executor per backend, each in its own file so that a backend can be left out of a build by leaving out its file.
#pragma once

#include <memory>

#include "autograd/executor.h"

namespace fairway {

std::unique_ptr<Executor> make_ref_executor(Queue&);
std::unique_ptr<Executor> make_cpu_executor(Queue&);
std::unique_ptr<Executor> make_cuda_executor(Backend, Queue&);  // asserts that CUDA is in the build

}  // namespace fairway
