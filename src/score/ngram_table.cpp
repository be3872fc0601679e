#include "score/ngram_table.h"

#include <algorithm>
#include <limits>
#include <new>

namespace fairway {
namespace {

constexpr uint64_t kFewProbes = 16;

uint64_t stored(uint64_t key) { return key == ~uint64_t{0} ? key : key + 1; }  // 0 marks an empty entry

template <class Count>
void count_up(Count& counter) {
  if (counter < std::numeric_limits<Count>::max()) ++counter;
}

}  // namespace

NgramTable::NgramTable(int64_t bits, Probing probing)
    : bits_(bits), probes_(probing == Probing::sixteen ? kFewProbes : uint64_t{1} << bits) {
  clear();
}

void NgramTable::clear() {
  const size_t entries = size_t{1} << bits_;
  contexts_.reset(static_cast<Context*>(std::calloc(entries, sizeof(Context))));
  pairs_.reset(static_cast<Pair*>(std::calloc(entries, sizeof(Pair))));
  if (!contexts_ || !pairs_) throw std::bad_alloc();
}

// The entry of the key, or the empty one where it would go; null when others are in the way of all probes.
template <class Entry>
Entry* NgramTable::locate(Entry* table, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << bits_) - 1, begin = slot(key, bits_);
  for (uint64_t probe = 0; probe < probes_; ++probe) {
    Entry& entry = table[(begin + probe) & mask];
    if (entry.key == stored(key) || entry.key == 0) return &entry;
  }
  return nullptr;
}

NgramGuess NgramTable::find(uint64_t context) const {
  const Context* entry = locate(contexts_.get(), context);
  if (!entry || entry->key == 0) return {};
  return {entry->token, entry->best, entry->count};
}

void NgramTable::add(uint64_t context, uint64_t pair_key, uint16_t token) {
  Pair* pair = locate(pairs_.get(), pair_key);
  if (pair) {
    pair->key = stored(pair_key);
    count_up(pair->count);
  }
  Context* entry = locate(contexts_.get(), context);
  if (!entry) return;
  if (entry->key == 0) *entry = {stored(context), 0, token, 0};
  count_up(entry->count);
  if (token == entry->token) {
    count_up(entry->best);
  } else if (pair && pair->count > entry->best) {
    entry->token = token;
    entry->best = static_cast<uint16_t>(std::min<uint32_t>(pair->count, std::numeric_limits<uint16_t>::max()));
  }
}

}  // namespace fairway
