// The four samplers, for make_sampler and their tests.
#pragma once

#include "base/rng.h"
#include "data/sampler.h"
#include "data/state_io.h"

namespace fairway::data {

// Options and data that a saved state must agree with.
uint64_t state_key(const SamplerOptions& options, const Corpus& corpus);

// One stream over all shards, wrapping around (§12.2): rank r takes B * T + 1 consecutive tokens, its rows T apart.
class SequentialSampler : public Sampler {
 public:
  SequentialSampler(const SamplerOptions& options, Corpus corpus);
  void next(std::span<Window> out) override;
  void save(std::vector<std::byte>& out) const override;
  void restore(std::span<const std::byte> state) override;
  bool crosses_shards() const override { return true; }

 private:
  SamplerOptions options_;
  Corpus corpus_;
  std::vector<uint64_t> begins_;
  uint64_t at_ = 0;  // in the concatenation
};

// Each shard is walked with its own phase and a stride coprime to its blocks, and shards are mixed by weights (§12.1).
class CoprimeSampler : public Sampler {
 public:
  CoprimeSampler(const SamplerOptions& options, Corpus corpus);
  void next(std::span<Window> out) override;
  void save(std::vector<std::byte>& out) const override;
  void restore(std::span<const std::byte> state) override;

  struct Cursor {
    uint64_t phase = 0, blocks = 0, next = 0, start = 0, stride = 1;
    bool begun = false;
  };
  const Cursor& cursor(size_t shard) const { return cursors_[shard]; }
  int64_t plans() const { return plans_; }
  int64_t mix() const;  // shards the next plan draws from

 private:
  void weigh();
  void choose();
  void count();
  void fill_buckets();
  void interleave();
  void reset(size_t shard);
  uint64_t take(size_t shard);
  double progress() const;

  SamplerOptions options_;
  Corpus corpus_;
  Rng rng_;
  int64_t plans_ = 0, windows_ = 0;     // windows_: of one plan
  std::vector<size_t> eligible_;        // shards with at least one block
  std::vector<Cursor> cursors_;         // per shard
  std::vector<double> weights_;         // per eligible shard
  std::vector<size_t> chosen_, order_;  // indices of eligible_; order_ is scratch of the interleave
  std::vector<double> chosen_weights_;
  std::vector<int64_t> counts_, begin_;  // per chosen shard: windows, and where its bucket starts in bucket_
  std::vector<Window> bucket_, list_;
};

// Blocks of each shard in a random order, shards picked by what remains of them (§12.3). Rank r owns shards r, r + W, …; with
// fewer shards than ranks the ranks that share one own equal parts of it.
class ShuffledSampler : public Sampler {
 public:
  ShuffledSampler(const SamplerOptions& options, Corpus corpus);
  void next(std::span<Window> out) override;
  void save(std::vector<std::byte>& out) const override;
  void restore(std::span<const std::byte> state) override;

 private:
  struct Part {
    uint32_t shard = 0;
    uint64_t begin = 0, tokens = 0;  // the part of the shard
    uint64_t phase = 0, key = 0, blocks = 0, left = 0;
  };
  struct Rank {
    std::vector<Part> parts;
    Rng rng{0};
    uint64_t left = 0;
  };
  void reset(Rank& rank);

  SamplerOptions options_;
  Corpus corpus_;
  std::vector<Rank> ranks_;
};

// Consecutive spans of B * T + 1 tokens per rank inside one shard; a shard is entered at its first document and left when the
// rest is too short for a whole step (A.1). Segments are cut by recipe/segments.h.
class DocpackSampler : public Sampler {
 public:
  DocpackSampler(const SamplerOptions& options, Corpus corpus);
  void next(std::span<Window> out) override;
  void save(std::vector<std::byte>& out) const override;
  void restore(std::span<const std::byte> state) override;

 private:
  SamplerOptions options_;
  Corpus corpus_;
  uint64_t needed_;
  uint64_t shard_ = 0, at_ = 0;
  bool entered_ = false;
};

// A keyed permutation of [0, size): a Feistel network with cycle walking, so a shuffle of any length needs no memory.
uint64_t permute(uint64_t index, uint64_t size, uint64_t key);

}  // namespace fairway::data
