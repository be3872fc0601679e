#include "fuzz/mutate.h"

#include <algorithm>
#include <cstring>
#include <iterator>

using fairway::Rng;

namespace {

thread_local Rng own_rng(1);

}  // namespace

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
  if (bytes.size() > kMostInputBytes) bytes.resize(kMostInputBytes);
}

void seed_mutations(uint64_t seed, uint64_t stream) { own_rng = Rng(seed, stream); }

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  mutate(bytes, bytes, own_rng);
  const size_t used = std::min(bytes.size(), max_size);
  std::memcpy(data, bytes.data(), used);
  return used;
}
