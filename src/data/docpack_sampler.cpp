// Document packing (spec A.1).
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "data/samplers.h"

namespace fairway::data {

DocpackSampler::DocpackSampler(const SamplerOptions& options, Corpus corpus)
    : options_(options),
      corpus_(std::move(corpus)),
      needed_(static_cast<uint64_t>(options.world) *
              (static_cast<uint64_t>(options.rows) * static_cast<uint64_t>(options.length) + 1)) {
  const uint64_t largest = corpus_.tokens.empty() ? 0 : *std::max_element(corpus_.tokens.begin(), corpus_.tokens.end());
  if (largest < needed_)
    throw InputError(
        fmt::format("a step of packed documents reads {} tokens of one shard, but the largest has {}: make fewer and larger "
                    "shards, or train on fewer tokens a step",
                    needed_, largest));
}

void DocpackSampler::next(std::span<Window> out) {
  const size_t shards = corpus_.tokens.size();
  for (size_t tried = 0; !entered_ || corpus_.tokens[shard_] - at_ < needed_; ++tried) {
    if (tried > shards)
      throw InputError(fmt::format("no shard holds {} tokens after the start of its first document", needed_));
    if (entered_) shard_ = (shard_ + 1) % shards;
    const uint64_t first = corpus_.first_bos(shard_);
    at_ = first < corpus_.tokens[shard_] ? first : 0;  // without any document start, all of it belongs to one document
    entered_ = true;
  }
  const auto rows = static_cast<uint64_t>(options_.rows), length = static_cast<uint64_t>(options_.length);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = {static_cast<uint32_t>(shard_), at_ + i / rows * (rows * length + 1) + i % rows * length};
  at_ += needed_;
}

void DocpackSampler::save(std::vector<std::byte>& out) const {
  StateWriter writer(out);
  writer.put(state_key(options_, corpus_));
  for (const uint64_t word : {shard_, at_, uint64_t{entered_}}) writer.put(word);
}

void DocpackSampler::restore(std::span<const std::byte> state) {
  StateReader reader(state);
  reader.expect(state_key(options_, corpus_), "the saved data position belongs to other shards or another data recipe");
  const uint64_t shard = reader.word(corpus_.tokens.size() - 1);
  const uint64_t at = reader.word(corpus_.tokens[shard]);
  const bool entered = reader.word(1) != 0;
  reader.end();
  shard_ = shard, at_ = at, entered_ = entered;
}

}  // namespace fairway::data
