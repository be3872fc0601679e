// Stands in for nccl.cpp where NCCL's header was not found.
#include "base/error.h"
#include "comm/nccl_start.h"

namespace fairway {

bool nccl_in_build() { return false; }
std::string nccl_version() { return ""; }
std::unique_ptr<Communicator> start_nccl(const Launch&, Communicator*) {
  throw InputError("--comm nccl: this program was built without NCCL (it needs make cuda and nccl.h, Debian's libnccl-dev)");
}

}  // namespace fairway
