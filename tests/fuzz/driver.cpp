// A fuzzer without coverage feedback, for compilers without libFuzzer and for every `make test`: the target's seeds, then
// mutations of them from a fixed random seed, until so many runs or seconds are over. A crash leaves its input in
// `crash_<target>`. Usage: fuzz_<target> RUNS SECONDS [SEED], or fuzz_<target> FILE to repeat one input.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>

#include "base/rng.h"
#include "fuzz/targets.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using fairway::Rng;

constexpr size_t kMostBytes = 1 << 20;
std::string input, crash_path;

void keep_input() {
  std::ofstream(crash_path, std::ios::binary) << input;
  std::fprintf(stderr, "the input lies in %s\n", crash_path.c_str());
}

int run(std::string bytes) {
  input = std::move(bytes);
  // A copy of exactly this size, so that a read past its end is one past an allocation.
  const std::vector<uint8_t> exact(input.begin(), input.end());
  return LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

uint32_t odd_number(Rng& rng) {
  constexpr uint32_t kOdd[] = {0,      1,      2,      127,     128,        255,        256,
                               0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  return rng.below(3) == 0 ? static_cast<uint32_t>(rng.next_u64()) : kOdd[rng.below(std::size(kOdd))];
}

void mutate(std::string& bytes, const std::string& other, Rng& rng) {
  if (bytes.empty()) bytes.push_back(0);
  // Heads hold the structure: half of all changes go there.
  const size_t at = rng.below(rng.below(2) == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size());
  const size_t room = bytes.size() - at, part = 1 + rng.below(std::min<size_t>(room, 1 + rng.below(64)));
  switch (rng.below(9)) {
    case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << rng.below(8)); break;
    case 1: bytes[at] = static_cast<char>(odd_number(rng)); break;
    case 2: {
      const uint32_t number = odd_number(rng);
      std::memcpy(bytes.data() + at, &number, std::min(room, sizeof number));
      break;
    }
    case 3: bytes.resize(at); break;
    case 4: bytes.erase(at, part); break;
    case 5: bytes.insert(at, bytes.substr(at, part)); break;
    case 6: bytes.insert(at, part, static_cast<char>(odd_number(rng))); break;
    case 7: bytes = bytes.substr(0, at) + other.substr(rng.below(other.size() + 1)); break;
    default: bytes[at] = "{}[]\"\\:,0\n\f%"[rng.below(12)];
  }
  if (bytes.size() > kMostBytes) bytes.resize(kMostBytes);
}

int fuzz(long runs, double seconds, uint64_t seed) {
  const std::vector<std::string> seeds = fuzz_seeds();
  for (const std::string& bytes : seeds) run(bytes);
  Rng rng(seed);
  const auto begin = std::chrono::steady_clock::now();
  long done = 0;
  for (; done < runs; ++done) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds) break;
    std::string bytes = seeds[rng.below(seeds.size())];
    for (uint64_t i = 1 + rng.below(6); i > 0; --i) mutate(bytes, seeds[rng.below(seeds.size())], rng);
    run(std::move(bytes));
  }
  std::printf("%zu seeds, %ld mutations, no crash\n", seeds.size(), done);
  return done > 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = arguments[0];
  crash_path = "crash_" + name.substr(name.find_last_of('/') + 1);
  if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);
  std::set_terminate([] {
    keep_input();
    std::abort();
  });
  if (count == 2) {
    std::ifstream file(arguments[1], std::ios::binary);
    return run(std::string(std::istreambuf_iterator<char>(file), {}));
  }
  if (count < 3) return std::fprintf(stderr, "usage: %s RUNS SECONDS [SEED], or %s FILE\n", arguments[0], arguments[0]), 2;
  return fuzz(std::atol(arguments[1]), std::atof(arguments[2]), count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 1);
}
