// Which windows of tokens a step trains on (spec §12, A.1). A plan covers the whole step: the windows of all W emulated ranks,
// the same for any number of processes and threads, drawn from one seed.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "data/shard.h"
#include "recipe/train_recipe.h"

namespace fairway::data {

SamplerKind sampler_kind(std::string_view name);  // InputError for an unknown name

struct SamplerOptions {
  SamplerKind kind = SamplerKind::coprime;
  int64_t length = 2048;  // T: tokens of a row; a window has T + 1
  int64_t rows = 48;      // B: rows of one emulated rank in one step
  int world = 8;          // W: emulated ranks
  uint64_t seed = 1337;
  // Coprime: shard weights are remaining^alpha, alpha falling over `ramp` plans while the shards mixed per plan rise.
  double alpha_first = 0.9, alpha_last = 0.5;
  int64_t ramp = 1800;
  // Docpack: segments begin at `bos` and have at most `max_segment` tokens.
  uint16_t bos = 1;
  int64_t max_segment = 2048;
};

// What a sampler knows of the data: token counts, and where the first document of a shard begins (asked for by docpack only).
struct Corpus {
  std::vector<uint64_t> tokens;
  std::function<uint64_t(size_t shard)> first_bos;
  uint64_t fingerprint = 0;
};

Corpus corpus_of(const ShardSet& shards, uint16_t bos = 1);  // `shards` must outlive it

class Sampler {
 public:
  virtual ~Sampler() = default;

  // The next plan: W * B windows, those of emulated rank r at [r * B, (r + 1) * B). Does not allocate.
  virtual void next(std::span<Window> out) = 0;
  virtual void save(std::vector<std::byte>& out) const = 0;    // replaces `out`
  virtual void restore(std::span<const std::byte> state) = 0;  // InputError when it is of other data or options
  virtual bool crosses_shards() const { return false; }        // a window may go on in the next shard

  std::vector<std::byte> save() const {
    std::vector<std::byte> out;
    save(out);
    return out;
  }
};

// InputError when the shards are too small for the options.
std::unique_ptr<Sampler> make_sampler(const SamplerOptions& options, Corpus corpus);

}  // namespace fairway::data
