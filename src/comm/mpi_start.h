// MPI behind one function, so that only one file needs its header: mpi.cpp, or no_mpi.cpp where it is not installed.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace fairway {

// Starts MPI and its watchdog; MPI ends with the object. InputError unless MPI sees as many ranks as the launcher promised.
std::unique_ptr<Communicator> start_mpi(int promised_size);

}  // namespace fairway
