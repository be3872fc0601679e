// A model of one training step on n GPUs (spec §9): two lanes, kernels and collectives, walked in the order of Parallel Muon.
// Times come from a table measured on one H200 and from published link rates; nothing here is measured while it runs.
#pragma once

#include <string>
#include <vector>

#include "recipe/recipe.h"

namespace fairway::bench {

struct Gpu {
  std::string name;
  double copy_tb_per_s;    // reads and writes together, as a copy reaches it
  double link_gb_per_s;    // that one GPU sends to the others at once
  double link_latency_us;  // of one collective
  double gemm_tflops;      // of a product that fills the device
  double launch_us;        // least time of one kernel
  int multiprocessors;
};
Gpu find_gpu(const std::string& name);  // "h100" or "h200"; InputError for others

// How the replicated gradients and the banks travel.
enum class Schedule : uint8_t {
  published,  // one blocking all-reduce for each replicated tensor
  packed,     // one for all of them, and the optimizer's kernels without a framework's calls: what src/optim does
  early       // packed, and a layer's slice of the banks leaves as soon as its backward pass is done
};
Schedule find_schedule(const std::string& name);
std::string name_of(Schedule);

struct Collective {
  std::string name;
  double bytes = 0;                 // that one rank sends
  double start_ms = 0, end_ms = 0;  // from the start of the step
  double exposed_ms = 0;            // that kernels waited for it
};

struct ScalingInputs {
  int ranks = 8;
  double tokens = 98304;  // of one GPU in a step
  double passes_ms = 0;   // forward and backward; 0: the PyTorch stack's, from the table
  Schedule schedule = Schedule::published;
};

struct StepModel {
  double passes_ms = 0, optimizer_ms = 0;  // kernels
  double step_ms = 0;
  double wire_ms = 0, exposed_ms = 0;  // of all collectives
  std::vector<Collective> collectives;
  double hidden() const { return wire_ms > 0 ? 1 - exposed_ms / wire_ms : 1; }  // share of wire_ms nobody waited for
};

// The PyTorch stack's forward and backward passes for `tokens` on that GPU.
double published_passes_ms(const Recipe& recipe, const Gpu& gpu, double tokens);
StepModel model_step(const Recipe& recipe, const Gpu& gpu, const ScalingInputs& inputs);

struct Anchor {
  std::string recipe;
  double published_ms;  // 8×H100
};
const std::vector<Anchor>& published_steps();

}  // namespace fairway::bench
