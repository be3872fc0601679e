// Which instruction set this process uses: the best the machine has, or what FAIRWAY_ISA says.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {

extern const KernelTable generic_kernels, avx2_kernels, avx512_kernels;

namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}

const KernelTable& choose() {
  if (const char* wanted = std::getenv("FAIRWAY_ISA"); wanted && *wanted) {
    if (const KernelTable* table = find_kernels(wanted)) return *table;
    throw InputError("FAIRWAY_ISA is \"" + std::string(wanted) +
                     "\": expected generic, avx2 or avx512, and one that this machine supports");
  }
  if (has_avx512()) return avx512_kernels;
  return has_avx2() ? avx2_kernels : generic_kernels;
}

std::atomic<const KernelTable*> chosen{nullptr};

}  // namespace

const KernelTable* find_kernels(const char* name) {
  if (std::strcmp(name, "generic") == 0) return &generic_kernels;
  if (std::strcmp(name, "avx2") == 0 && has_avx2()) return &avx2_kernels;
  if (std::strcmp(name, "avx512") == 0 && has_avx512()) return &avx512_kernels;
  return nullptr;
}

const KernelTable& kernels() {
  const KernelTable* table = chosen.load(std::memory_order_acquire);
  if (!table) {
    table = &choose();
    chosen.store(table, std::memory_order_release);
  }
  return *table;
}

void use_kernels(const KernelTable& table) { chosen.store(&table, std::memory_order_release); }

const char* isa_name() { return kernels().name; }

}  // namespace fairway::cpu
