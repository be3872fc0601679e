// The reference backend at work.
#pragma once

#include "autograd/executor.h"

namespace fairway {

std::unique_ptr<Executor> make_ref_executor(Queue& queue);

}  // namespace fairway
