// How a command joins the ranks it was started with.
#pragma once

#include "app/command.h"
#include "comm/launch.h"

namespace fairway::app {

// The ranks of this program; alone when it was started alone. Makes the flags this rank's: its part of the machine's cores, and
// nothing printed but by rank 0. On a device this rank's is chosen, and `carrier` tells what moves tensors between devices.
Communicator& meet_ranks(CommonFlags& flags, const std::string& carrier = "auto");

}  // namespace fairway::app
