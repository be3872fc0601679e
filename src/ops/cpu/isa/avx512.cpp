// Kernels for AVX-512 (F, DQ, VL, BW). Compiled with flags of its own (see CMakeLists.txt).
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kMr = 6, kNv = 4;              // 24 of 32 registers; wide tiles need fewer loads per multiply-add than 14 x 2
constexpr int kTileRows = 8, kTileVecs = 3;  // attention: scores and sums over keys
constexpr int kGradRows = 6, kGradVecs = 4;  // attention: gradient of the queries
constexpr int kMaxK = 512;                   // most products in one chunk: C is written once and not read back
#define FAIRWAY_VECTOR_REGISTER "v"

#include "ops/cpu/isa/table.inl"

}  // namespace

extern const KernelTable avx512_kernels;
// Constant-initialised: no code of this unit may run before CPUID has been asked.
constinit const KernelTable avx512_kernels = make_table("avx512");

}  // namespace fairway::cpu
