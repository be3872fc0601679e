// What each fuzz target defines: libFuzzer's entry point, inputs to start from and, where it knows its format, a mutator that
// mends sums and lengths after a change so that the code behind them is reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
std::vector<std::string> fuzz_seeds();

// What an input told its target; the driver resets it before each.
struct FuzzNote {
  bool accepted = false;  // read to its end, not refused
  uint64_t claim = 0;     // bytes that the reader's own check of the file's claims lets it take
};
inline thread_local FuzzNote fuzz_note;
