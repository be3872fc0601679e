#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.h"
#include "data/samplers.h"

namespace fairway::data {
namespace {

void check(const SamplerOptions& options) {
  constexpr int64_t kMaxTokens = int64_t{1} << 31;  // of one rank in one step: flat indices are int32
  if (options.length < 1 || options.rows < 1 || options.world < 1 || options.length >= kMaxTokens / options.rows ||
      options.world > 4096)
    throw InputError(fmt::format("a step of {} ranks with {} rows of {} tokens cannot be sampled", options.world, options.rows,
                                 options.length));
  if (options.max_segment < 1)
    throw InputError(fmt::format("segments of at most {} tokens were asked for", options.max_segment));
  if (options.ramp < 1) throw InputError(fmt::format("a shard-mixing ramp of {} plans was asked for", options.ramp));
}

}  // namespace

SamplerKind sampler_kind(std::string_view name) {
  constexpr auto& names = EnumNames<SamplerKind>::names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw InputError(fmt::format("there is no sampler \"{}\"; expected one of {}", name, fmt::join(names, ", ")));
  return static_cast<SamplerKind>(found - names.begin());
}

Corpus corpus_of(const ShardSet& shards, uint16_t bos) {
  Corpus corpus;
  for (size_t i = 0; i < shards.size(); ++i) corpus.tokens.push_back(shards[i].tokens());
  corpus.fingerprint = shards.fingerprint();
  corpus.first_bos = [&shards, bos](size_t shard) { return shards[shard].find(bos, 0); };
  return corpus;
}

std::unique_ptr<Sampler> make_sampler(const SamplerOptions& options, Corpus corpus) {
  check(options);
  switch (options.kind) {
    case SamplerKind::sequential: return std::make_unique<SequentialSampler>(options, std::move(corpus));
    case SamplerKind::coprime: return std::make_unique<CoprimeSampler>(options, std::move(corpus));
    case SamplerKind::shuffled: return std::make_unique<ShuffledSampler>(options, std::move(corpus));
    case SamplerKind::docpack: return std::make_unique<DocpackSampler>(options, std::move(corpus));
  }
  fail_invariant(__FILE__, __LINE__, "options.kind", "a sampler kind without a sampler");
}

uint64_t state_key(const SamplerOptions& options, const Corpus& corpus) {
  uint64_t key = 0;
  const auto mix = [&](uint64_t word) {
    key = (key ^ word) * 0x9E3779B97F4A7C15ULL;
    key ^= key >> 29;
  };
  for (const uint64_t word :
       {static_cast<uint64_t>(options.kind), static_cast<uint64_t>(options.length), static_cast<uint64_t>(options.rows),
        static_cast<uint64_t>(options.world), options.seed, static_cast<uint64_t>(options.ramp),
        std::bit_cast<uint64_t>(options.alpha_first), std::bit_cast<uint64_t>(options.alpha_last), corpus.fingerprint})
    mix(word);
  for (const uint64_t tokens : corpus.tokens) mix(tokens);
  return key;
}

SequentialSampler::SequentialSampler(const SamplerOptions& options, Corpus corpus)
    : options_(options), corpus_(std::move(corpus)) {
  begins_.push_back(0);
  for (const uint64_t tokens : corpus_.tokens) begins_.push_back(begins_.back() + tokens);
  if (begins_.back() <= static_cast<uint64_t>(options.length))
    throw InputError(fmt::format("the shards hold {} tokens, fewer than one window of {}", begins_.back(), options.length + 1));
}

void SequentialSampler::next(std::span<Window> out) {
  const auto length = static_cast<uint64_t>(options_.length), rows = static_cast<uint64_t>(options_.rows);
  const uint64_t total = begins_.back(), span = rows * length + 1;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t index = (at_ + i / rows * span + i % rows * length) % total;
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), index);
    const auto shard = static_cast<size_t>(after - begins_.begin()) - 1;
    out[i] = {static_cast<uint32_t>(shard), index - begins_[shard]};
  }
  at_ = (at_ + static_cast<uint64_t>(options_.world) * span) % total;
}

void SequentialSampler::save(std::vector<std::byte>& out) const {
  StateWriter writer(out);
  writer.put(state_key(options_, corpus_));
  writer.put(at_);
}

void SequentialSampler::restore(std::span<const std::byte> state) {
  StateReader reader(state);
  reader.expect(state_key(options_, corpus_), "the saved data position belongs to other shards or another data recipe");
  const uint64_t at = reader.word(begins_.back() - 1);
  reader.end();
  at_ = at;
}

}  // namespace fairway::data
