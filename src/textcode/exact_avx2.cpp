// Compiled with flags of its own (see CMakeLists.txt).
#include <immintrin.h>

#include <bit>

#include "textcode/exact_kernels.h"

namespace fairway::textcode {
namespace {

#include "textcode/exact.inl"

}  // namespace

constinit const ExactKernels exact_avx2{attend, dot, softcap, weigh};

}  // namespace fairway::textcode
