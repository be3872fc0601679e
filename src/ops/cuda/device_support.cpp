// Whether CUDA can be used, from facts alone: the one place that decides, so that every case can be tested without a device.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "ops/cuda/device.h"

namespace fairway::cuda {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

constexpr int kOldest = 80;  // Ampere
constexpr int kHopper = 90;

std::string capability_text(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

Support refused(std::string problem, std::string remedy) { return {{}, std::move(problem), std::move(remedy)}; }

Support without_driver(const DeviceFacts& facts) {
  if (facts.driver_version == 0)
    return refused("this machine has no NVIDIA driver", "install it (nvidia-smi shows whether it works)");
  return refused("the NVIDIA driver is too old: it knows CUDA " + version_text(facts.driver_version) +
                     ", this program was built with CUDA " + version_text(facts.runtime_version),
                 "update the driver");
}

Support without_device(const DeviceFacts& facts) {
  if (facts.visible_told)
    return refused("CUDA_VISIBLE_DEVICES is \"" + facts.visible + "\", which leaves no CUDA device to this program",
                   "unset it, or set it to the number of a device that nvidia-smi lists");
  return refused("this machine has no CUDA device", "nvidia-smi shows what the driver finds");
}

Support without_library(const DeviceFacts& facts) {
  const std::string major = std::to_string(facts.runtime_version / 1000),
                    minor = std::to_string(facts.runtime_version % 1000 / 10);
  return refused(facts.missing_library + " was not found",
                 "apt-get install libcublas-" + major + "-" + minor +
                     " from NVIDIA's repository, or pip install nvidia-cublas and add its lib folder to LD_LIBRARY_PATH");
}

Support of_devices(const DeviceFacts& facts) {
  Support support;
  std::string others;
  for (const DeviceInfo& device : facts.devices) {
    if (facts.built.runs_on(device)) support.usable.push_back(device);
    others += (others.empty() ? "" : ", ") + device.name + " has compute capability " + device.arch();
  }
  if (!support.usable.empty() && !facts.missing_library.empty()) return without_library(facts);
  if (!support.usable.empty()) return support;
  const bool too_old = std::all_of(facts.devices.begin(), facts.devices.end(),
                                   [](const DeviceInfo& device) { return device.capability() < kOldest; });
  return refused(others + ", this program was built for " + facts.built.text(),
                 too_old ? "use the CPU, which is the default here; CUDA wants Ampere (8.0) or later"
                         : "make cuda builds for every card from 8.0 on; or use the CPU, which is the default here");
}

}  // namespace

bool Built::runs_on(const DeviceInfo& device) const {
  if (ptx > 0 && device.capability() >= ptx) return true;
  return std::any_of(code.begin(), code.end(), [&](int of) {  // 90 is 9.0a, for nothing but itself
    return of == kHopper ? device.capability() == kHopper : device.major == of / 10 && device.minor >= of % 10;
  });
}

std::string Built::text() const {
  std::string out;
  for (int of : code) out += (out.empty() ? "" : ", ") + capability_text(of);
  return out + (ptx > 0 ? " and all later ones" : " only");
}

KernelPath path_of(const DeviceInfo& device, const char* asked) {
  const std::string_view path = asked == nullptr ? "" : asked;
  if (!path.empty() && path != name_of(KernelPath::generic))
    throw InputError("FAIRWAY_CUDA_PATH is \"" + std::string(path) +
                     "\"; expected \"generic\", or nothing for the fastest kernels");
  return path.empty() && device.capability() == kHopper ? KernelPath::sm90 : KernelPath::generic;
}
KernelPath path_of(const DeviceInfo& device) { return path_of(device, std::getenv("FAIRWAY_CUDA_PATH")); }
const char* name_of(KernelPath path) { return path == KernelPath::sm90 ? "sm_90a" : "generic"; }

// Operations a cycle of one processor, by NVIDIA's tables. Cards sold for games sum in float at half of it. The datasheet of an
// H100 or H200 has 989.4 TFLOP/s, which is for a lower clock than the device tells.
PeakFlops peak_flops(int capability, int processors, double clock_hertz) {
  constexpr double kProductsOfHopper = 1.83e9;  // Hz
  const double each = capability == kOldest                        ? 2048
                      : capability == kHopper                      ? 4096
                      : capability >= 100 && capability / 10 != 12 ? 8192
                                                                   : 1024;
  const double clock = capability == kHopper ? std::min(clock_hertz, kProductsOfHopper) : clock_hertz;
  return {each * processors * clock, (capability == kOldest ? 128 : 256) * processors * clock_hertz};
}
PeakFlops peak_of_hopper() { return peak_flops(kHopper, 132, 1.98e9); }

Support supports(const DeviceFacts& facts) {
  if (!facts.in_build) return refused("this program was built without CUDA", "make cuda, then build/cuda/bin/fairway");
  switch (facts.answer) {
    case DeviceFacts::Answer::driver_insufficient: return without_driver(facts);
    case DeviceFacts::Answer::failed:
      return refused("CUDA does not start: " + facts.failure, "nvidia-smi shows whether the driver works");
    case DeviceFacts::Answer::no_device: break;
    case DeviceFacts::Answer::devices:
      if (!facts.devices.empty()) return of_devices(facts);
  }
  return without_device(facts);
}

std::string sentence_of(const Failure& failure) {
  const std::string told = failure.call + ": " + failure.words;
  const auto mib = [](size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  switch (failure.kind) {
    case Failure::Kind::no_room:
      return "the device has no room" + (failure.asked > 0 ? " for " + mib(failure.asked) : std::string()) + " (" +
             mib(failure.free) + " are free; " + told +
             "); end what else nvidia-smi shows on it, or take a smaller train.micro_batch_tokens or model";
    case Failure::Kind::lost:
      return "the device is lost (" + told +
             "): this process can do nothing more on it; nvidia-smi and the system's log tell why";
    case Failure::Kind::kernel:
      return "a kernel failed (" + told + "): an error of this program, or of the device's memory if it does not happen again";
    case Failure::Kind::other: break;
  }
  return told;
}

const Support& support() {
  static const Support found = supports(device_facts());
  return found;
}

const std::vector<DeviceInfo>& devices() { return support().usable; }

}  // namespace fairway::cuda
