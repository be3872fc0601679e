// Ranks that the program has started itself, as each of them sees it.
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/launch.h"

namespace fairway {

// Meets the others and starts the watchdog. InputError when the launch names no memory that they share.
std::unique_ptr<Communicator> start_own(const Launch& launch);

// Leaves what a rank would say, and its exit status, for the process that started it, which says it once for all of them.
// False when nobody would read it.
bool told_to_parent(const Launch& launch, const std::string& sentence, int status);

}  // namespace fairway
