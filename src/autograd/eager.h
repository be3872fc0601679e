// One executor per backend, each in its own file so that a backend can be left out of a build by leaving out its file.
#pragma once

#include <memory>

#include "autograd/executor.h"

namespace fairway {

std::unique_ptr<Executor> make_ref_executor(Queue&);
std::unique_ptr<Executor> make_cpu_executor(Queue&);

}  // namespace fairway
