// NCCL behind two functions, so that only one file needs its header: nccl.cpp, or no_nccl.cpp in builds without it. The library
// itself is opened when first asked for: the program starts without it.
#pragma once

#include <memory>
#include <string>

#include "comm/launch.h"

namespace fairway {

bool nccl_in_build();
std::string nccl_version();  // "" where the library cannot be opened

// Ranks on devices, one each: this process's is the current one of its thread. `host` carries what lies in host memory and
// ends all ranks; without it (one rank, or torchrun's variables) host memory passes through the device. InputError when NCCL
// is absent or the ranks cannot meet.
std::unique_ptr<Communicator> start_nccl(const Launch& launch, Communicator* host);

}  // namespace fairway
