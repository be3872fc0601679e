// Holds libFuzzer's inputs to the memory that driver.cpp allows its own. The linker's --wrap puts it between libFuzzer and the
// target.
#include <cstdio>
#include <cstdlib>

#include "fuzz/allocations.h"
#include "fuzz/targets.h"

extern "C" int __real_LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int __wrap_LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz_note = {};
  reset_allocations();
  __real_LLVMFuzzerTestOneInput(data, size);
  const int64_t beyond = most_allocated() - static_cast<int64_t>(fuzz_note.claim);
  if (beyond <= kMostBeyondClaim) return 0;
  std::fprintf(stderr, "an input took %lld bytes beyond its claim of %llu\n", static_cast<long long>(beyond),
               static_cast<unsigned long long>(fuzz_note.claim));
  std::abort();
}
