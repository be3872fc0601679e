// Compiled with flags of its own (see CMakeLists.txt).
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <bit>

#include "ops/cpu/isa/packed_kernels.h"
#include "textcode/exact_kernels.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {
namespace {

#include "textcode/exact.inl"
#include "textcode/exact_grouped.inl"

}  // namespace

constinit const ExactKernels exact_generic{attend, dot, softcap, weigh};
constinit const GroupedKernels grouped_generic = kGroupedWords;

}  // namespace fairway::textcode
