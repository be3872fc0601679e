// Kernels for AVX2 with FMA. Compiled with flags of its own (see CMakeLists.txt).
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kLanes = 8;
constexpr int kMr = 6, kNv = 2;              // 12 of 16 registers
constexpr int kTileRows = 4, kTileVecs = 3;  // attention: scores and sums over keys
constexpr int kGradRows = 6, kGradVecs = 2;  // attention: gradient of the queries
constexpr int kMaxK = 256;
#define FAIRWAY_VECTOR_REGISTER "x"

#include "ops/cpu/isa/table.inl"

}  // namespace

extern const KernelTable avx2_kernels;
// Constant-initialised: no code of this unit may run before CPUID has been asked.
constinit const KernelTable avx2_kernels = make_table("avx2");

}  // namespace fairway::cpu
