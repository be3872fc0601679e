// How ranks that no MPI connects find each other: rank 0 listens, the others ask it for a few bytes.
#pragma once

#include <cstddef>
#include <span>

#include "comm/launch.h"

namespace fairway {

// Rank 0's bytes become everybody's. The place is FAIRWAY_RENDEZVOUS (HOST:PORT), else MASTER_ADDR and the port after
// MASTER_PORT, which the launcher keeps for itself. InputError when the others do not come, or rank 0 does not answer, in time.
void hand_out(const Launch& launch, std::span<std::byte> bytes, double seconds = 60);

struct Meeting {
  std::string host, port;
};
Meeting meeting_place(const Environment& environment);

}  // namespace fairway
