// How a stage joins the ranks the program was started with.
#pragma once

#include "comm/launch.h"
#include "stages/machine.h"

namespace fairway {

// The ranks of this program; alone when it was started alone. Makes the settings this rank's: its part of the machine's cores,
// and nothing printed but by rank 0. On a device this rank's is chosen, and `carrier` tells what moves tensors between devices.
Communicator& meet_ranks(Compute& compute, const std::string& carrier = "auto");

}  // namespace fairway
