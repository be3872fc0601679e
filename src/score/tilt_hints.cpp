#include "score/tilt_hints.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace fairway {
namespace {

struct Sighting {  // of a context
  uint64_t key;
  uint32_t target;
  bool operator<(const Sighting& other) const { return key != other.key ? key < other.key : target < other.target; }
};

constexpr int64_t kTargetsAtOnce = int64_t{1} << 16;  // whose keys are made together
constexpr int64_t kPartTargets = int64_t{1} << 13;    // about as many, so that a part stays in a core's cache
constexpr int64_t kMostParts = int64_t{1} << 12;
constexpr uint64_t kSpread = 0x9E3779B97F4A7C15;

// One order: every target that has as many tokens before it.
class OneOrder {
 public:
  OneOrder(const NgramRules& rules, const NgramOrder& order, std::span<const uint16_t> stream, ThreadPool& pool)
      : rules_(rules), order_(order), stream_(stream), pool_(pool), end_(static_cast<int64_t>(stream.size())) {
    const auto wanted = static_cast<uint64_t>(std::clamp<int64_t>((end_ - order.length) / kPartTargets, 1, kMostParts));
    part_bits_ = std::bit_width(std::bit_ceil(wanted)) - 1;
    blocks_ = (end_ - order.length + kTargetsAtOnce - 1) / kTargetsAtOnce;
  }

  void add_hints(std::vector<Hint>& hints) {
    if (order_.length >= end_) return;
    deal_out();
    const int64_t slots = pool_.threads();
    std::vector<Scratch> scratch(static_cast<size_t>(slots));
    pool_.parallel_for_slots(slots, parts(), [&](int64_t slot, int64_t part) {
      const size_t begin = begins_[static_cast<size_t>(part)], end = begins_[static_cast<size_t>(part) + 1];
      hint_part({sightings_.data() + begin, end - begin}, scratch[static_cast<size_t>(slot)], hints);
    });
  }

 private:
  struct Scratch {
    std::vector<uint32_t> counts = std::vector<uint32_t>(size_t{1} << 16);  // by token, zero between contexts
    std::vector<uint8_t> seen;                                              // times, up to two, by a hash of the key
    std::vector<Sighting> repeated;
  };

  int64_t parts() const { return int64_t{1} << part_bits_; }
  size_t part_of(uint64_t key) const { return part_bits_ == 0 ? 0 : static_cast<size_t>((key * kSpread) >> (64 - part_bits_)); }

  // Sightings by part, and inside a part in the order of the stream: blocks are counted, then each knows its places.
  void deal_out() {
    const auto many = static_cast<size_t>(parts());
    std::vector<std::vector<uint32_t>> counts(static_cast<size_t>(blocks_), std::vector<uint32_t>(many));
    for_blocks([&](int64_t block, int64_t, std::span<const uint64_t> keys) {
      std::vector<uint32_t>& own = counts[static_cast<size_t>(block)];
      for (const uint64_t key : keys) ++own[part_of(key)];
    });
    begins_.assign(many + 1, 0);
    uint32_t next = 0;
    for (size_t part = 0; part < many; ++part) {
      begins_[part] = next;
      for (std::vector<uint32_t>& of_block : counts) next += std::exchange(of_block[part], next);
    }
    begins_[many] = next;
    sightings_.resize(next);
    for_blocks([&](int64_t block, int64_t first, std::span<const uint64_t> keys) {
      std::vector<uint32_t>& places = counts[static_cast<size_t>(block)];
      for (size_t i = 0; i < keys.size(); ++i)
        sightings_[places[part_of(keys[i])]++] = {keys[i], static_cast<uint32_t>(first + static_cast<int64_t>(i))};
    });
  }

  template <class Work>
  void for_blocks(Work work) {
    pool_.parallel_for(blocks_, [&](int64_t block) {
      const int64_t first = order_.length + block * kTargetsAtOnce;
      std::vector<uint64_t> keys(static_cast<size_t>(std::min(kTargetsAtOnce, end_ - first)));
      context_hashes(rules_.hash, stream_, order_.length, first, keys);
      work(block, first, std::span<const uint64_t>(keys));
    });
  }

  // Most contexts come once and hint at nothing; only the others are sorted.
  void hint_part(std::span<const Sighting> part, Scratch& scratch, std::vector<Hint>& hints) {
    const size_t places = std::bit_ceil(8 * part.size() + 1);
    scratch.seen.assign(places, 0);
    const auto times = [&](const Sighting& sighting) -> uint8_t& {
      return scratch.seen[(sighting.key ^ sighting.key >> 32) * kSpread >> 20 & (places - 1)];
    };
    for (const Sighting& sighting : part)
      if (uint8_t& count = times(sighting); count < 2) ++count;
    scratch.repeated.clear();
    for (const Sighting& sighting : part)
      if (times(sighting) > 1) scratch.repeated.push_back(sighting);
    std::sort(scratch.repeated.begin(), scratch.repeated.end());
    for (auto begin = scratch.repeated.begin(); begin != scratch.repeated.end();) {
      const auto end = std::find_if(begin, scratch.repeated.end(), [&](const Sighting& s) { return s.key != begin->key; });
      hint_context({begin, end}, scratch.counts, hints);
      begin = end;
    }
  }

  // Each target is looked up in the counts of those before it, then counted.
  void hint_context(std::span<const Sighting> context, std::vector<uint32_t>& counts, std::vector<Hint>& hints) {
    uint32_t best = 0, count = 0;
    uint16_t top = 0;
    for (const Sighting& sighting : context) {
      Hint& hint = hints[sighting.target];
      if (hint.token < 0 && count > 0 && order_.believes(best, count)) hint = {top, rules_.strength(best, count)};
      ++count;
      const uint16_t token = stream_[sighting.target];
      if (++counts[token] > best) {
        best = counts[token];
        top = token;
      }
    }
    for (const Sighting& sighting : context) counts[stream_[sighting.target]] = 0;
  }

  const NgramRules& rules_;
  NgramOrder order_;
  std::span<const uint16_t> stream_;
  ThreadPool& pool_;
  int64_t end_, blocks_ = 0;
  int part_bits_ = 0;
  std::vector<uint32_t> begins_;  // of parts among the sightings, and the end
  std::vector<Sighting> sightings_;
};

}  // namespace

TiltHints::TiltHints(const NgramRecipe& recipe, std::span<const uint16_t> stream, ThreadPool& pool)
    : damping_(recipe.damping), hints_(stream.size()) {
  FAIRWAY_ASSERT(stream.size() < std::numeric_limits<uint32_t>::max(), "targets are counted in 32 bits");
  const NgramRules rules = ngram_rules(recipe);
  for (const NgramOrder& order : rules.orders) OneOrder(rules, order, stream, pool).add_hints(hints_);
}

}  // namespace fairway
