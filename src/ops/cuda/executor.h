// The CUDA backend at work: sessions on a device (session.h). In builds without CUDA no_cuda.cpp stands in.
#pragma once

#include "autograd/executor.h"

namespace fairway {

// cuda or cuda_f32; `host` lends its threads. Asserts that CUDA is in the build.
std::unique_ptr<Executor> make_cuda_executor(Backend backend, Queue& host);

}  // namespace fairway
