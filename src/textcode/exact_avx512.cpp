// Compiled with flags of its own (see CMakeLists.txt).
#include <immintrin.h>

#include <bit>

#include "ops/cpu/isa/packed_kernels.h"
#include "textcode/exact_kernels.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {
namespace {

#include "textcode/exact.inl"
#include "textcode/exact_grouped.inl"

}  // namespace

constinit const ExactKernels exact_avx512{attend, dot, softcap, weigh};
constinit const GroupedKernels grouped_avx512 = kGroupedWords;

}  // namespace fairway::textcode
