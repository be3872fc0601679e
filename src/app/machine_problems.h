// What would go wrong on a machine and what mends it: decided from plain facts, so that every case can be tried anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fairway::app {

inline constexpr double kGiB = 1 << 30;

// Limits of a card's clock, as its driver tells them; what is 0 was not told.
struct CardLimits {
  int index = 0;
  double clock_mhz = 0, usual_clock_mhz = 0;  // that applications get, and get unless somebody changed it
  double watts = 0, usual_watts = 0;
  bool too_hot = false, short_of_power = false;  // held back by the hardware now
};

// Limits of the processor's clock; what is 0 or empty was not told.
struct ClockLimits {
  double mhz = 0, most_mhz = 0;  // what is allowed, and what the processor can do
  std::string driver, governor;  // of the kernel
};

struct MachineState {
  bool vector_kernels = true;  // AVX2, NEON or better
  bool mpi_in_build = true;
  double memory_free = -1, disk_free = -1;  // bytes; below zero: not known

  bool card_here = false, cuda_in_build = false;  // an NVIDIA device file; CUDA in this program
  std::string cuda_problem, cuda_remedy;          // why no card can be used; empty: one can
  bool driver_too_old = false;
  int runtime_version = 0;  // of CUDA: 1000·major + 10·minor
  bool cudnn = true;        // its library was found
  ClockLimits processor;
  std::vector<CardLimits> cards;
};

// Sentences "what: how to mend it", the gravest first.
std::vector<std::string> problems_of(const MachineState& state);

// The oldest driver that a major version of CUDA works with, by NVIDIA's table; 0: not in it.
int oldest_driver(int runtime_version);

}  // namespace fairway::app
