// Which instruction set this process uses: the best the machine has, or what FAIRWAY_ISA says.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {

extern const KernelTable generic_kernels, avx2_kernels, avx512_kernels, neon_kernels;

namespace {

struct Offer {
  const KernelTable* table;
  bool (*suits)();  // this machine
};

bool always() { return true; }
#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
}
constexpr Offer kOffers[]{{&generic_kernels, always}, {&avx2_kernels, has_avx2}, {&avx512_kernels, has_avx512}};
#elif defined(__aarch64__)
constexpr Offer kOffers[]{{&generic_kernels, always}, {&neon_kernels, always}};
#else
constexpr Offer kOffers[]{{&generic_kernels, always}};
#endif

const KernelTable& choose() {
  const std::vector<const KernelTable*> tables = available_kernels();
  if (const char* wanted = std::getenv("FAIRWAY_ISA"); wanted && *wanted) {
    if (const KernelTable* table = find_kernels(wanted)) return *table;
    std::string names;
    for (const KernelTable* table : tables) names += (names.empty() ? "" : ", ") + std::string(table->name);
    throw InputError("FAIRWAY_ISA is \"" + std::string(wanted) + "\": expected what this machine has, one of " + names);
  }
  return *tables.back();
}

std::atomic<const KernelTable*> chosen{nullptr};

}  // namespace

std::vector<const KernelTable*> available_kernels() {
  std::vector<const KernelTable*> tables;
  for (const Offer& offer : kOffers)
    if (offer.suits()) tables.push_back(offer.table);
  return tables;
}

const KernelTable* find_kernels(const char* name) {
  for (const KernelTable* table : available_kernels())
    if (std::strcmp(name, table->name) == 0) return table;
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
