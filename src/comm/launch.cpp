#include "comm/launch.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "comm/mpi_start.h"

namespace fairway {
namespace {

struct Pair {
  const char *size, *rank;
};
constexpr Pair kMpiLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}, {"PMI_SIZE", "PMI_RANK"}, {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}};
constexpr Pair kTorchrun{"WORLD_SIZE", "RANK"};

// A whole number from 0 up, or −1.
int number(const char* text) {
  int value = -1;
  if (text == nullptr) return -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc{} && *end == '\0' && value >= 0 ? value : -1;
}

std::unique_ptr<Communicator>& made() {
  static std::unique_ptr<Communicator> communicator;
  return communicator;
}

std::unique_ptr<Communicator> start(const Launch& launch) {
  const std::string told = launch.variable + " = " + std::to_string(launch.size);
  if (launch.kind == Launch::Kind::torchrun) {
    throw InputError(told +
                     " and RANK are set, as torchrun does, but no MPI launcher's variables: ranks on the CPU talk over " +
                     "MPI; start them with mpirun -n " + std::to_string(launch.size) + " fairway …, or unset WORLD_SIZE");
  }
  if (!mpi_in_build()) {
    throw InputError(told +
                     ": this program was built without MPI; install libopenmpi-dev and build again, or start one process");
  }
  return start_mpi(launch.size);
}

}  // namespace

Launch find_launch(const Environment& environment) {
  for (const Pair& pair : kMpiLaunchers) {
    const int size = number(environment(pair.size)), rank = number(environment(pair.rank));
    if (size > 1 && rank >= 0 && rank < size) return {Launch::Kind::mpi, size, rank, pair.size};
    if (size == 1) return {};
  }
  const int size = number(environment(kTorchrun.size)), rank = number(environment(kTorchrun.rank));
  if (size > 1 && rank >= 0 && rank < size) return {Launch::Kind::torchrun, size, rank, kTorchrun.size};
  return {};
}

Launch find_launch() {
  return find_launch([](const char* name) { return std::getenv(name); });
}

Communicator* world_if_made() { return made().get(); }

Communicator& world() {
  const Launch launch = find_launch();
  if (launch.kind == Launch::Kind::alone) return single_process();
  if (!made()) made() = start(launch);
  return *made();
}

}  // namespace fairway
