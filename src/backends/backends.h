// Every backend of this build by its name. A backend can be left out of a build by leaving out its files.
#pragma once

#include "ops/cpu/executor.h"
#include "ops/cuda/executor.h"
#include "ops/ref/executor.h"

namespace fairway {

Backend parse_backend(std::string_view name);  // throws InputError, naming what this program has
std::unique_ptr<Executor> make_executor(Backend backend, Queue& queue);

}  // namespace fairway
