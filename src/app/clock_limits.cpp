#include "app/clock_limits.h"

#include <dlfcn.h>

#include <fstream>

namespace fairway::app {
namespace {

constexpr const char* kPolicy = "/sys/devices/system/cpu/cpu0/cpufreq/";

template <class T>
T kernel_says(const char* file) {
  T value{};
  std::ifstream(std::string(kPolicy) + file) >> value;
  return value;
}

// What is used of nvml.h, whose numbers and types are fixed: clocks 1 is of the processors, and two groups of reasons why a
// card runs slower. The functions return 0 when they answered.
using NvmlDevice = void*;
constexpr unsigned kSmClock = 1;
constexpr unsigned long long kHot = 0x20 | 0x40, kPowerBrake = 0x80;

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ != nullptr) started_ = call("nvmlInit_v2");
  }
  ~Nvml() {
    if (started_) call("nvmlShutdown");
    if (library_ != nullptr) dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  bool started() const { return started_; }

  template <class... Args>
  bool call(const char* name, Args... args) const {
    auto* function = reinterpret_cast<int (*)(Args...)>(dlsym(library_, name));
    return function != nullptr && function(args...) == 0;
  }
  double number(const char* name, NvmlDevice device) const {
    unsigned value = 0;
    return call(name, device, &value) ? value : 0;
  }
  double clock(const char* name, NvmlDevice device) const {
    unsigned value = 0;
    return call(name, device, kSmClock, &value) ? value : 0;
  }

 private:
  void* library_;
  bool started_ = false;
};

CardLimits limits_of(const Nvml& nvml, NvmlDevice device, int index) {
  unsigned long long reasons = 0;
  nvml.call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &reasons);
  return {.index = index,
          .clock_mhz = nvml.clock("nvmlDeviceGetApplicationsClock", device),
          .usual_clock_mhz = nvml.clock("nvmlDeviceGetDefaultApplicationsClock", device),
          .watts = nvml.number("nvmlDeviceGetEnforcedPowerLimit", device) / 1e3,
          .usual_watts = nvml.number("nvmlDeviceGetPowerManagementDefaultLimit", device) / 1e3,
          .too_hot = (reasons & kHot) != 0,
          .short_of_power = (reasons & kPowerBrake) != 0};
}

}  // namespace

ClockLimits processor_limits() {
  return {.mhz = kernel_says<double>("scaling_max_freq") / 1e3,
          .most_mhz = kernel_says<double>("cpuinfo_max_freq") / 1e3,
          .driver = kernel_says<std::string>("scaling_driver"),
          .governor = kernel_says<std::string>("scaling_governor")};
}

std::vector<CardLimits> card_limits() {
  std::vector<CardLimits> out;
  const Nvml nvml;
  unsigned cards = 0;
  if (!nvml.started() || !nvml.call("nvmlDeviceGetCount_v2", &cards)) return out;
  for (unsigned i = 0; i < cards; ++i) {
    NvmlDevice device = nullptr;
    if (nvml.call("nvmlDeviceGetHandleByIndex_v2", i, &device)) out.push_back(limits_of(nvml, device, static_cast<int>(i)));
  }
  return out;
}

bool library_found(const char* name) {
  void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

}  // namespace fairway::app
