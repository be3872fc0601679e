// Counts of contexts and of the tokens that followed them, in two open-addressed tables of fixed size (scoring spec §2.7): at
// most so many probes, a full neighbourhood drops the insertion, counters saturate. Memory: 32 bytes for each of 2^bits
// entries.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace fairway {

struct NgramGuess {
  uint16_t token = 0;
  uint32_t best = 0, count = 0;  // times this token followed, times the context was seen
  double confidence() const { return count > 0 ? static_cast<double>(best) / static_cast<double>(count) : 0; }
};

class NgramTable {
 public:
  enum class Probing : uint8_t { sixteen, whole_table };
  explicit NgramTable(int64_t bits, Probing probing = Probing::sixteen);
  NgramGuess find(uint64_t context) const;  // count 0: never seen
  void add(uint64_t context, uint64_t pair, uint16_t token);
  void clear();

  // Slot of a key before probing.
  static uint64_t slot(uint64_t key, int64_t bits) { return (key * 0x9E3779B97F4A7C15U) & ((uint64_t{1} << bits) - 1); }

 private:
  struct Context {
    uint64_t key;  // 0: empty
    uint32_t count;
    uint16_t token, best;
  };
  struct Pair {
    uint64_t key;
    uint32_t count;
  };
  template <class Entry>
  Entry* locate(Entry* table, uint64_t key) const;

  template <class Entry>
  struct Free {
    void operator()(Entry* entries) const { std::free(entries); }
  };
  int64_t bits_;
  uint64_t probes_;
  // From calloc: pages that no key falls into are never touched.
  std::unique_ptr<Context[], Free<Context>> contexts_;
  std::unique_ptr<Pair[], Free<Pair>> pairs_;
};

}  // namespace fairway
