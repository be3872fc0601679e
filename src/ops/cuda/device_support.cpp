// Whether CUDA can be used, from facts alone: the one place that decides, so that every case can be tested without a device.
#include "ops/cuda/device.h"

namespace fairway::cuda {
namespace {

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

bool runs_here(const DeviceInfo& device) { return device.major == kBuiltMajor && device.minor == kBuiltMinor; }

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

Support of_devices(const DeviceFacts& facts) {
  Support support;
  std::string others;
  for (const DeviceInfo& device : facts.devices) {
    if (runs_here(device)) support.usable.push_back(device);
    others += (others.empty() ? "" : ", ") + device.name + " has compute capability " + device.arch();
  }
  if (!support.usable.empty()) return support;
  const DeviceInfo needed{.major = kBuiltMajor, .minor = kBuiltMinor};
  return refused(others + ", this program was built for " + needed.arch() + " (" + kBuiltFor + ", Hopper) only",
                 "use the CPU, which is the default here");
}

}  // namespace

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
