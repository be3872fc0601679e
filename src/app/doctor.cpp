// `fairway doctor`: what this machine offers, what would go wrong on it, and the command that mends that.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/clock_limits.h"
#include "app/command.h"
#include "app/kept_peak.h"
#include "app/machine_facts.h"
#include "comm/launch.h"
#include "comm/nccl_start.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/cuda/device.h"

namespace fairway::app {
namespace {

MachineState state_of_machine(double memory_free, double disk_free) {
  const cuda::Support& support = cuda::support();
  const cuda::DeviceFacts facts = cuda::device_facts();
  const bool usable = !support.usable.empty();
  return {.vector_kernels = std::string_view(cpu::isa_name()) != "generic",
          .mpi_in_build = mpi_in_build(),
          .memory_free = memory_free,
          .disk_free = disk_free,
          .card_here = std::filesystem::exists("/dev/nvidia0"),
          .cuda_in_build = cuda::in_build(),
          .cuda_problem = usable ? "" : support.problem,
          .cuda_remedy = support.remedy,
          .driver_too_old = facts.answer == cuda::DeviceFacts::Answer::driver_insufficient && facts.driver_version > 0,
          .runtime_version = facts.runtime_version,
          .cudnn = !usable || library_found("libcudnn.so.9"),
          .processor = processor_limits(),
          .cards = usable ? card_limits() : std::vector<CardLimits>{}};
}

std::string cuda_text() {
  if (!cuda::in_build()) return "not in this build (make cuda)";
  const std::vector<cuda::DeviceInfo>& devices = cuda::devices();
  if (devices.empty()) return "no device that this program can use";
  return fmt::format("{} x {}, {:.0f} GiB, kernels {}", devices.size(), devices[0].name,
                     static_cast<double>(devices[0].memory_bytes) / kGiB, name_of(path_of(devices[0])));
}

// The device that is used, else the first there is; "path" names the kernels it runs, null where it runs none.
nlohmann::ordered_json cuda_json() {
  const cuda::DeviceFacts facts = cuda::device_facts();
  const std::vector<cuda::DeviceInfo>& usable = cuda::devices();
  nlohmann::ordered_json out{{"device", nullptr}, {"arch", nullptr}, {"path", nullptr}};
  if (const std::vector<cuda::DeviceInfo>& shown = usable.empty() ? facts.devices : usable; !shown.empty()) {
    out["device"] = shown[0].name;
    out["arch"] = shown[0].arch();
  }
  if (!usable.empty()) out["path"] = name_of(path_of(usable[0]));
  return out;
}

std::string gpus_text() {
  const size_t devices = cuda::devices().size();
  if (devices == 0) return "none for --gpus; --ranks N shares the work among processes on the CPU";
  return devices == 1 ? "1 for --gpus" : fmt::format("2 to {} for --gpus, one rank on each", devices);
}

std::string nccl_text() {
  if (!nccl_in_build()) return "not in this build";
  const std::string version = nccl_version();
  return version.empty() ? "libnccl.so.2 is not installed (ranks on devices then use MPI)" : version;
}

}  // namespace

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

double meminfo_bytes(const std::string& name) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) * 1024;
  }
  return -1;
}

nlohmann::ordered_json machine_facts(ThreadPool& pool, bool measure_anew) {
  std::error_code error;
  const double disk_free = static_cast<double>(std::filesystem::space(".", error).available);
  const std::vector<cuda::DeviceInfo>& devices = cuda::devices();
  const double memory_free = meminfo_bytes("MemAvailable");
  return {{"version", FAIRWAY_VERSION},
          {"cpu", cpu_model()},
          {"isa", cpu::isa_name()},
          {"threads", pool.threads()},
          {"peak_gflops", kept_peak_gflops(pool, measure_anew)},
          {"memory_bytes", static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE))},
          {"memory_free_bytes", memory_free},
          {"disk_free_bytes", disk_free},
          {"cuda", cuda_json()},
          {"cuda_in_build", cuda::in_build()},
          {"device", devices.empty() ? "" : devices[0].name},
          {"gpus", devices.size()},
          {"nccl", !nccl_version().empty()},
          {"mpi", mpi_in_build()},
          {"problems", problems_of(state_of_machine(memory_free, error ? -1 : disk_free))}};
}

nlohmann::ordered_json launch_facts(const Compute& compute, int ranks) {
  nlohmann::ordered_json out{{"backend", compute.backend}, {"ranks", ranks}, {"version", FAIRWAY_VERSION}};
  if (compute.backend != "cuda") {
    out["device"] = cpu_model();
    out["isa"] = cpu::isa_name();
    return out;
  }
  const auto version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
  const cuda::DeviceFacts facts = cuda::device_facts();
  out["device"] = cuda::devices().empty() ? "" : cuda::devices()[0].name;
  if (!cuda::devices().empty()) out["path"] = name_of(path_of(cuda::devices()[0]));
  out["driver"] = version(facts.driver_version);
  out["runtime"] = version(facts.runtime_version);
  return out;
}

namespace {

int run_doctor(const CommonFlags& flags) {
  Machine machine(flags);
  const nlohmann::ordered_json facts = machine_facts(machine.queue.pool(), true);
  const auto number = [&](const char* name) { return facts.at(name).get<double>(); };
  Pieces text{{fmt::format(
      "program  fairway {}\ncpu      {} ({})\nthreads  {}\npeak     {:.0f} GFLOP/s in float32\nmemory   {:.1f} GiB, {:.1f} "
      "free\n"
      "disk     {:.1f} GiB free here\ncuda     {}\ngpus     {}\nnccl     {}\nmpi      {}\n",
      FAIRWAY_VERSION, cpu_model(), cpu::isa_name(), machine.queue.pool().threads(), number("peak_gflops"),
      number("memory_bytes") / kGiB, number("memory_free_bytes") / kGiB, number("disk_free_bytes") / kGiB, cuda_text(),
      gpus_text(), nccl_text(), mpi_in_build() ? mpi_version() : "not in this build")}};
  const auto problems = facts.at("problems").get<std::vector<std::string>>();
  for (const std::string& problem : problems) {
    text.push_back({"problem", Tone::warning});
    text.push_back({"  " + problem + "\n"});
  }
  if (problems.empty()) text.push_back({"no problems found\n", Tone::good});
  print_result(flags, facts, text);
  return 0;
}

}  // namespace

void add_doctor(CLI::App& program) {
  add_command(program, "doctor", "what this machine offers, what would go wrong, and how to mend it", run_doctor,
              Ranks::allowed);
}

}  // namespace fairway::app
