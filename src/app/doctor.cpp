// `fairway doctor`: what this machine offers and what is missing, with the command that mends it.
#include <fmt/core.h>
#include <unistd.h>

#include <fstream>

#include "app/command.h"
#include "comm/launch.h"
#include "comm/nccl_start.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/cpu/peak.h"
#include "ops/cuda/device.h"

namespace fairway::app {
namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

int run_doctor(const CommonFlags& flags) {
  Machine machine(flags);
  const double peak = cpu::fma_peak_gflops(machine.queue.pool(), 0.1);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  std::string text = fmt::format("cpu      {} ({})\nthreads  {}\npeak     {:.0f} GFLOP/s in float32\nmemory   {:.1f} GiB\n",
                                 cpu_model(), cpu::isa_name(), machine.queue.pool().threads(), peak, memory / (1 << 30));
  if (std::string_view(cpu::isa_name()) == "generic")
    problems.push_back("no AVX2 on this CPU: training will be several times slower than it could be");
  for (const auto& problem : problems) text += "problem  " + problem.get<std::string>() + "\n";
  const std::vector<cuda::DeviceInfo> devices = cuda::devices();
  if (!cuda::in_build()) {
    text += "cuda     not in this build\n";
  } else {
    text += devices.empty() ? "cuda     no device\n"
                            : fmt::format("cuda     {}, {:.0f} GiB\n", devices[0].name,
                                          static_cast<double>(devices[0].memory_bytes) / (1 << 30));
  }
  const std::string nccl = nccl_version();
  text += fmt::format("nccl     {}\nmpi      {}\n",
                      !nccl_in_build() ? "not in this build"
                      : nccl.empty()   ? "libnccl.so.2 is not installed (ranks on devices then talk over MPI)"
                                       : nccl,
                      mpi_in_build() ? mpi_version() : "not in this build (install libopenmpi-dev, then build again)");
  print_result(flags,
               {{"cpu", cpu_model()},
                {"isa", cpu::isa_name()},
                {"threads", machine.queue.pool().threads()},
                {"peak_gflops", peak},
                {"memory_bytes", memory},
                {"cuda", !devices.empty()},
                {"nccl", !nccl.empty()},
                {"mpi", mpi_in_build()},
                {"problems", problems}},
               text);
  return 0;
}

}  // namespace

void add_doctor(CLI::App& program) { add_command(program, "doctor", "what this machine offers", run_doctor); }

}  // namespace fairway::app
