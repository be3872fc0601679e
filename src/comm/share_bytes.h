// Bytes of any length, from one rank to all.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace fairway {

void share_bytes(Communicator& comm, std::string& bytes, int from);
// What every rank has, in the order of the ranks.
std::vector<std::string> gather_bytes(Communicator& comm, const std::string& mine);

}  // namespace fairway
