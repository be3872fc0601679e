// Shuffled blocks (spec §12.3).
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "data/samplers.h"

namespace fairway::data {
namespace {

uint64_t scramble(uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace

uint64_t permute(uint64_t index, uint64_t size, uint64_t key) {
  FAIRWAY_ASSERT(index < size, "an index outside the permutation");
  const int half = (std::bit_width(size - 1) + 1) / 2;  // two halves of this many bits hold every index
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t mixed = left ^ (scramble(key + right * 0x9E3779B97F4A7C15ULL + (round << 56)) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= size);
  return index;
}

ShuffledSampler::ShuffledSampler(const SamplerOptions& options, Corpus corpus) : options_(options), corpus_(std::move(corpus)) {
  const size_t files = corpus_.tokens.size(), world = static_cast<size_t>(options.world);
  ranks_.resize(world);
  for (size_t r = 0; r < world && files > 0; ++r) {
    ranks_[r].rng = Rng(options.seed, r);
    const size_t sharers = files >= world ? 1 : (world - 1 - r % files) / files + 1;  // ranks r % files, + files, + 2 files, …
    for (size_t f = files >= world ? r : r % files; f < files; f += std::min(world, files)) {
      const uint64_t begin = corpus_.tokens[f] * (r / std::min(files, world)) / sharers;
      const uint64_t end = corpus_.tokens[f] * (r / std::min(files, world) + 1) / sharers;
      if (end - begin > static_cast<uint64_t>(options.length))
        ranks_[r].parts.push_back({static_cast<uint32_t>(f), begin, end - begin});
    }
  }
  for (size_t r = 0; r < world; ++r)
    if (ranks_[r].parts.empty())
      throw InputError(fmt::format("the shards of rank {} of {} hold no window of {} tokens", r, world, options.length + 1));
}

void ShuffledSampler::reset(Rank& rank) {
  const auto length = static_cast<uint64_t>(options_.length);
  rank.left = 0;
  for (Part& part : rank.parts) {
    part.phase = rank.rng.below(std::min(length - 1, part.tokens - length - 1) + 1);
    part.key = rank.rng.next_u64();
    part.blocks = part.left = (part.tokens - 1 - part.phase) / length;
    rank.left += part.left;
  }
}

void ShuffledSampler::next(std::span<Window> out) {
  const auto rows = static_cast<size_t>(options_.rows);
  for (size_t i = 0; i < out.size(); ++i) {
    Rank& rank = ranks_[i / rows];
    if (rank.left == 0) reset(rank);
    uint64_t pick = rank.rng.below(rank.left--);
    size_t p = 0;
    while (pick >= rank.parts[p].left) pick -= rank.parts[p++].left;
    Part& part = rank.parts[p];
    const uint64_t block = permute(--part.left, part.blocks, part.key);
    out[i] = {part.shard, part.begin + part.phase + block * static_cast<uint64_t>(options_.length)};
  }
}

void ShuffledSampler::save(std::vector<std::byte>& out) const {
  StateWriter writer(out);
  writer.put(state_key(options_, corpus_));
  for (const Rank& rank : ranks_) {
    writer.put(rank.rng.save());
    for (const Part& part : rank.parts)
      for (const uint64_t word : {part.phase, part.key, part.left}) writer.put(word);
  }
}

void ShuffledSampler::restore(std::span<const std::byte> state) {
  StateReader reader(state);
  reader.expect(state_key(options_, corpus_), "the saved data position belongs to other shards or another data recipe");
  const auto length = static_cast<uint64_t>(options_.length);
  std::vector<Rank> ranks = ranks_;
  for (Rank& rank : ranks) {
    rank.rng.restore(reader.rng());
    rank.left = 0;
    for (Part& part : rank.parts) {
      part.phase = reader.word(std::min(length - 1, part.tokens - length - 1));
      part.key = reader.word();
      part.blocks = (part.tokens - 1 - part.phase) / length;
      part.left = reader.word(part.blocks);
      rank.left += part.left;
    }
  }
  reader.end();
  ranks_ = std::move(ranks);
}

}  // namespace fairway::data
