#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "comm/mpi_start.h"
#include "comm/nccl_start.h"
#include "comm/own_ranks.h"

namespace fairway {
namespace {

struct Variables {
  const char *size, *rank, *local_size, *local_rank;
};
constexpr Variables kOwn{kRankCountVariable, kRankVariable, kRankCountVariable, kRankVariable};  // all on one machine
constexpr Variables kMpiLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID"}};
constexpr Variables kTorchrun{"WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK"};

// A whole number from 0 up, or −1.
int number(const char* text) {
  int value = -1;
  if (text == nullptr) return -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc{} && *end == '\0' && value >= 0 ? value : -1;
}

// MPI's is made before NCCL's, and so destroyed after it.
std::unique_ptr<Communicator>& made() {
  static std::unique_ptr<Communicator> communicator;
  return communicator;
}
std::unique_ptr<Communicator>& made_for_devices() {
  made();
  static std::unique_ptr<Communicator> communicator;
  return communicator;
}

Launch launched(Launch::Kind kind, const Variables& names, const Environment& environment) {
  Launch out{kind, number(environment(names.size)), number(environment(names.rank)), names.size};
  const int local_size = number(environment(names.local_size)), local_rank = number(environment(names.local_rank));
  out.local_size = local_size > 0 ? local_size : out.size;
  out.local_rank = local_rank >= 0 ? local_rank : out.rank;
  return out;
}
bool several(const Launch& launch) { return launch.size > 1 && launch.rank >= 0 && launch.rank < launch.size; }

std::unique_ptr<Communicator> start(const Launch& launch) {
  if (launch.kind == Launch::Kind::own) return start_own(launch);
  const std::string told = launch.variable + " = " + std::to_string(launch.size);
  if (launch.kind == Launch::Kind::torchrun) {
    throw InputError(
        told + " and RANK are set, as by torchrun, without an MPI launcher's variables: that works only for training " +
        "on CUDA devices; ranks on the CPU meet otherwise; unset WORLD_SIZE and give --ranks " + std::to_string(launch.size) +
        ", or start them with mpirun -n " + std::to_string(launch.size) + " fairway …");
  }
  if (!mpi_in_build()) {
    throw InputError(told +
                     ": this program was built without MPI; install libopenmpi-dev and build again, or start one process");
  }
  return start_mpi(launch.size);
}

}  // namespace

Launch find_launch(const Environment& environment) {
  const Launch own = launched(Launch::Kind::own, kOwn, environment);
  if (several(own)) return own;
  for (const Variables& names : kMpiLaunchers) {
    Launch found = launched(Launch::Kind::mpi, names, environment);
    if (several(found)) return found;
    if (found.size == 1) return {};
  }
  const Launch found = launched(Launch::Kind::torchrun, kTorchrun, environment);
  return several(found) ? found : Launch{};
}

Launch find_launch() {
  return find_launch([](const char* name) { return std::getenv(name); });
}

Communicator* world_if_made() { return made() ? made().get() : made_for_devices().get(); }

void leave_world() {
  made_for_devices().reset();
  made().reset();
}

Communicator& world() {
  const Launch launch = find_launch();
  if (launch.kind == Launch::Kind::alone) return single_process();
  if (!made()) made() = start(launch);
  return *made();
}

Carrier parse_carrier(std::string_view name) {
  if (name == "auto") return Carrier::automatic;
  if (name == "mpi") return Carrier::mpi;
  if (name == "nccl") return Carrier::nccl;
  throw InputError("--comm " + std::string(name) + ": expected auto, mpi or nccl");
}

Communicator& device_world(Carrier carrier, int devices) {
  const Launch launch = find_launch();
  if (launch.kind == Launch::Kind::torchrun && carrier != Carrier::mpi) carrier = Carrier::nccl;
  const bool meets_on_host = launch.kind == Launch::Kind::mpi || launch.kind == Launch::Kind::own;
  Communicator* host = meets_on_host ? &world() : nullptr;
  if (carrier == Carrier::automatic && host != nullptr && devices >= host->local_size() && !nccl_version().empty())
    carrier = Carrier::nccl;
  if (carrier != Carrier::nccl) return world();
  if (host != nullptr && devices < host->local_size())
    throw InputError("--comm nccl: " + std::to_string(host->local_size()) + " ranks on a machine with " +
                     std::to_string(devices) + " devices; NCCL needs one for each rank (--comm mpi lets them share)");
  if (!made_for_devices()) made_for_devices() = start_nccl(launch, host);
  return *made_for_devices();
}

}  // namespace fairway
