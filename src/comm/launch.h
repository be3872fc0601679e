// How this process was started: alone, or as one rank of many by mpirun, srun, a launcher with torchrun's variables, or by
// this program itself (start_ranks.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "comm/communicator.h"

namespace fairway {

struct Launch {
  enum class Kind : uint8_t { alone, mpi, torchrun, own };
  Kind kind = Kind::alone;
  int size = 1, rank = 0;
  std::string variable;                // the environment variable that told
  int local_rank = 0, local_size = 1;  // on this machine; where nobody tells, all ranks are on one
};

// What start_ranks() sets, and its ranks read.
inline constexpr const char* kRankCountVariable = "FAIRWAY_RANK_COUNT";
inline constexpr const char* kRankVariable = "FAIRWAY_RANK";
inline constexpr const char* kRankMemoryVariable = "FAIRWAY_RANK_MEMORY";

// Reads this program's own variables, then OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS (MPI launchers), then
// WORLD_SIZE with RANK (torchrun).
// A launcher that started one process is the same as none.
using Environment = std::function<const char*(const char* name)>;
Launch find_launch(const Environment& environment);
Launch find_launch();

bool mpi_in_build();
std::string mpi_version();  // "" without MPI

// The communicator of this process, made at the first call: MPI starts only where a launcher of several processes was found.
// InputError when this program cannot work the way it was started.
Communicator& world();
Communicator* world_if_made();
void leave_world();  // at the end of the program: the ranks part

// For work on devices: what carries device tensors. Automatic: NCCL where it is installed and each rank of a machine has a
// device of its own, else MPI through host memory. NCCL may be asked for by a single process too. The current device of this
// thread is the rank's.
enum class Carrier : uint8_t { automatic, mpi, nccl };
Carrier parse_carrier(std::string_view name);  // "auto", "mpi", "nccl"; InputError for others
Communicator& device_world(Carrier carrier, int devices);

}  // namespace fairway
