// The CUDA devices of this machine that the program can work on. Without CUDA in the build there are none (no_cuda.cpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fairway::cuda {

struct DeviceInfo {
  std::string name;
  size_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  int index = 0;             // by CUDA's counting
  std::string arch() const { return std::to_string(major) + "." + std::to_string(minor); }
  int capability() const { return 10 * major + minor; }
};

// What the kernels are compiled for (cmake/FairwayCuda.cmake), as capabilities: 90 is 9.0.
struct Built {
  std::vector<int> code;  // machine code: runs on its own generation, from its own capability on
  int ptx = 0;            // from here on the driver compiles for every other device; 0: none
  bool runs_on(const DeviceInfo& device) const;
  std::string text() const;  // "9.0", "8.0, 9.0 and all later ones"
};
Built built();

// Which kernels a device runs. Those in sm90/ are for Hopper alone, the others for every device.
enum class KernelPath : unsigned char { generic, sm90 };
// `asked` is FAIRWAY_CUDA_PATH: "generic" takes the kernels of every device on Hopper too; InputError if it is anything else.
KernelPath path_of(const DeviceInfo& device, const char* asked);
KernelPath path_of(const DeviceInfo& device);  // as the environment asks
const char* name_of(KernelPath path);

// What CUDA tells when it is asked for its devices.
struct DeviceFacts {
  enum class Answer : unsigned char { devices, driver_insufficient, no_device, failed };
  bool in_build = false;
  Built built{};
  Answer answer = Answer::no_device;
  std::string failure;                          // CUDA's own words, of `failed`
  int driver_version = 0, runtime_version = 0;  // 1000·major + 10·minor; a driver of 0 is none
  bool visible_told = false;                    // CUDA_VISIBLE_DEVICES is set
  std::string visible;                          // to this
  std::vector<DeviceInfo> devices;
  std::string missing_library{};  // of CUDA's, without which a device is of no use; empty: none
};
DeviceFacts device_facts();
std::string missing_library();

// The devices that can run these kernels, or a sentence that says why none can.
struct Support {
  std::vector<DeviceInfo> usable;
  std::string problem;  // empty: some are usable
  std::string remedy;
};
Support supports(const DeviceFacts& facts);

// What CUDA answered to a call that failed, and the sentence that tells a user what happened and what to do.
struct Failure {
  enum class Kind : unsigned char { no_room, lost, kernel, other };
  Kind kind = Kind::other;
  std::string call, words;     // the function and CUDA's own words
  size_t asked = 0, free = 0;  // bytes, of no_room; 0: not told
};
std::string sentence_of(const Failure& failure);

// Dense products of a device a second, by its clock and processors: in bf16 with sums in float, and in float without TF32.
struct PeakFlops {
  double bf16, f32;
};
PeakFlops peak_flops(int capability, int processors, double clock_hertz);
PeakFlops peak_of_hopper();  // an H100 or H200 SXM
PeakFlops peak_flops();      // of the current device; where there is none, of a Hopper

double peak_bytes();  // of the current device's memory a second, by its clock and width; 0 if not told

size_t used_bytes();  // of the current device's memory, by all processes on it

bool in_build();
const Support& support();                  // of this machine, asked once
const std::vector<DeviceInfo>& devices();  // those that are usable
void use_device(int local_rank);  // this thread works on that rank's device from now on; ranks beyond the last one share

}  // namespace fairway::cuda
