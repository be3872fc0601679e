// Kernels for any machine: SSE2 on x86-64. Compiled with flags of its own (see CMakeLists.txt).
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kLanes = 4;
constexpr int kMr = 4, kNv = 2;              // 8 of 16 registers
constexpr int kTileRows = 4, kTileVecs = 3;  // attention: scores and sums over keys
constexpr int kGradRows = 4, kGradVecs = 2;  // attention: gradient of the queries
constexpr int kMaxK = 256;
#if defined(__x86_64__)
#define FAIRWAY_VECTOR_REGISTER "x"
#else
#define FAIRWAY_VECTOR_REGISTER "m"  // whatever registers are called there
#endif

#include "ops/cpu/isa/table.inl"

}  // namespace

extern const KernelTable generic_kernels;
// Constant-initialised: no code of this unit may run before the processor has been asked.
constinit const KernelTable generic_kernels = make_table("generic");

}  // namespace fairway::cpu
