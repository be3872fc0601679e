// Stands in for mpi.cpp where MPI is not installed.
#include "base/error.h"
#include "comm/launch.h"
#include "comm/mpi_start.h"

namespace fairway {

bool mpi_in_build() { return false; }
std::string mpi_version() { return ""; }
std::unique_ptr<Communicator> start_mpi(int) { throw InputError("this program was built without MPI"); }

}  // namespace fairway
