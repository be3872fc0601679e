#include "textcode/exact_kernels.h"

#include <string_view>

#include "ops/cpu/isa/kernels.h"

namespace fairway::textcode {

const ExactKernels& exact_kernels() {
#if defined(__x86_64__)
  const std::string_view isa = cpu::kernels().name;
  if (isa == "avx512") return __builtin_cpu_supports("avx512vnni") ? exact_vnni : exact_avx512;
  if (isa == "avx2") return exact_avx2;
#endif
  return exact_generic;  // NEON on Arm
}

}  // namespace fairway::textcode
