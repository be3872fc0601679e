#include "textcode/exact_kernels.h"

#include <string_view>

#include "ops/cpu/isa/kernels.h"

namespace fairway::textcode {

const ExactKernels& exact_kernels() {
  const std::string_view isa = cpu::kernels().name;
  if (isa == "avx512") return __builtin_cpu_supports("avx512vnni") ? exact_vnni : exact_avx512;
  return isa == "avx2" ? exact_avx2 : exact_generic;
}

}  // namespace fairway::textcode
