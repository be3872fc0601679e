#include "app/machine_problems.h"

#include <fmt/core.h>

namespace fairway::app {
namespace {

constexpr double kLittleDisk = 2 * kGiB, kLittleMemory = 2 * kGiB;  // a run of a published recipe needs more
constexpr double kLowered = 0.98;                                   // of a clock or power: rounding is no limit

bool lowered(double now, double usual) { return now > 0 && usual > 0 && now < kLowered * usual; }

void add_cuda(const MachineState& state, std::vector<std::string>& problems) {
  if (!state.cuda_in_build) {
    if (state.card_here) problems.push_back("an NVIDIA GPU is here, but " + state.cuda_problem + ": " + state.cuda_remedy);
    return;
  }
  if (!state.cuda_problem.empty()) {
    std::string sentence = state.cuda_problem + ": " + state.cuda_remedy;
    if (const int driver = oldest_driver(state.runtime_version); state.driver_too_old && driver > 0)
      sentence +=
          fmt::format(" to {} or a later one (apt-get install cuda-drivers, from NVIDIA's repository), then restart", driver);
    problems.push_back(sentence);
    return;
  }
  if (!state.cudnn)
    problems.push_back(
        fmt::format("libcudnn.so.9 was not found, so attention over whole sequences uses slower kernels: apt-get install "
                    "libcudnn9-cuda-{0}, or pip install nvidia-cudnn-cu{0} and add its lib folder to LD_LIBRARY_PATH",
                    state.runtime_version / 1000));
}

void add_cards(const MachineState& state, std::vector<std::string>& problems) {
  for (const CardLimits& card : state.cards) {
    if (lowered(card.clock_mhz, card.usual_clock_mhz))
      problems.push_back(fmt::format("the clock of GPU {0} is limited to {1:.0f} of {2:.0f} MHz: nvidia-smi -i {0} -rac",
                                     card.index, card.clock_mhz, card.usual_clock_mhz));
    if (lowered(card.watts, card.usual_watts))
      problems.push_back(fmt::format("the power of GPU {0} is limited to {1:.0f} of {2:.0f} W: nvidia-smi -i {0} -pl {2:.0f}",
                                     card.index, card.watts, card.usual_watts));
    if (card.too_hot)
      problems.push_back(
          fmt::format("GPU {} is too hot and runs slower: look at its cooling (nvidia-smi -q -d TEMPERATURE)", card.index));
    if (card.short_of_power)
      problems.push_back(
          fmt::format("GPU {} gets too little power and runs slower: look at its supply (nvidia-smi -q -d POWER)", card.index));
  }
}

void add_processor(const MachineState& state, std::vector<std::string>& problems) {
  const ClockLimits& clock = state.processor;
  if (!state.vector_kernels)
    problems.emplace_back(
        "generic kernels (no AVX2 or NEON on this CPU, or FAIRWAY_ISA=generic): training takes several times as long");
  if (lowered(clock.mhz, clock.most_mhz))
    problems.push_back(
        fmt::format("the processor's clock is limited to {:.0f} of {:.0f} MHz: cpupower frequency-set -u {:.0f}MHz", clock.mhz,
                    clock.most_mhz, clock.most_mhz));
  // The drivers of newer processors choose clocks themselves under a governor of that name.
  if (clock.governor == "powersave" && clock.driver.find("pstate") == std::string::npos)
    problems.emplace_back(
        "the kernel holds the processor at its lowest clock (powersave): cpupower frequency-set -g performance");
}

}  // namespace

int oldest_driver(int runtime_version) {
  switch (runtime_version / 1000) {
    case 11: return 450;
    case 12: return 525;
    case 13: return 580;
    default: return 0;
  }
}

std::vector<std::string> problems_of(const MachineState& state) {
  std::vector<std::string> problems;
  add_cuda(state, problems);
  if (state.memory_free >= 0 && state.memory_free < kLittleMemory)
    problems.push_back(fmt::format("only {:.1f} GiB of memory free: close other programs before you train a published recipe",
                                   state.memory_free / kGiB));
  if (state.disk_free >= 0 && state.disk_free < kLittleDisk)
    problems.push_back(fmt::format("only {:.1f} GiB of disk free here: checkpoints may not fit; choose --out on another disk",
                                   state.disk_free / kGiB));
  add_processor(state, problems);
  add_cards(state, problems);
  if (!state.mpi_in_build)
    problems.emplace_back(
        "built without MPI, which runs on several machines want (--gpus and --ranks do not): apt-get install libopenmpi-dev "
        "openmpi-bin, then make build");
  return problems;
}

}  // namespace fairway::app
