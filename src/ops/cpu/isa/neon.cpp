// Kernels for 64-bit Arm: NEON, which all of them have. Compiled with flags of its own (see CMakeLists.txt).
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kLanes = 4;
constexpr int kMr = 4, kNv = 5;              // 20 of 32 registers, and 9 for both sides: with more, g++ 12 spills sums
constexpr int kTileRows = 4, kTileVecs = 3;  // attention: scores and sums over keys
constexpr int kGradRows = 4, kGradVecs = 4;  // attention: gradient of the queries
constexpr int kMaxK = 256;
#define FAIRWAY_VECTOR_REGISTER "w"

#include "ops/cpu/isa/table.inl"

}  // namespace

extern const KernelTable neon_kernels;
constinit const KernelTable neon_kernels = make_table("neon");

}  // namespace fairway::cpu
