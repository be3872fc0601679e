// Global windows with coprime strides and diversity-aware shard weights (spec §12.1).
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "data/samplers.h"

namespace fairway::data {
namespace {

// Index drawn in proportion to the weights of `items`; their sum is passed in and positive.
template <class WeightOf>
size_t draw(Rng& rng, size_t items, double sum, WeightOf weight_of) {
  double left = rng.uniform01() * sum;
  size_t last = 0;
  for (size_t i = 0; i < items; ++i) {
    const double weight = weight_of(i);
    if (weight <= 0) continue;
    last = i;
    if (left < weight) return i;
    left -= weight;
  }
  return last;  // rounding used up the whole sum
}

}  // namespace

CoprimeSampler::CoprimeSampler(const SamplerOptions& options, Corpus corpus)
    : options_(options), corpus_(std::move(corpus)), rng_(options.seed), windows_(options.rows * options.world) {
  for (size_t i = 0; i < corpus_.tokens.size(); ++i)
    if (corpus_.tokens[i] > static_cast<uint64_t>(options.length)) eligible_.push_back(i);
  if (eligible_.empty())
    throw InputError(
        fmt::format("none of the {} shards holds one window of {} tokens", corpus_.tokens.size(), options.length + 1));
  const auto windows = static_cast<size_t>(windows_);
  cursors_.resize(corpus_.tokens.size());
  weights_.resize(eligible_.size());
  for (auto* scratch : {&chosen_, &order_}) scratch->reserve(std::min(eligible_.size(), windows));
  chosen_weights_.reserve(eligible_.size());
  counts_.reserve(eligible_.size());
  begin_.reserve(eligible_.size());
  bucket_.resize(windows);
  list_.resize(windows);
}

double CoprimeSampler::progress() const {
  return std::min(static_cast<double>(plans_) / static_cast<double>(options_.ramp), 1.0);
}

int64_t CoprimeSampler::mix() const {
  const int64_t world = options_.world, most = std::min(static_cast<int64_t>(eligible_.size()), windows_);
  const int64_t low = std::min(std::max<int64_t>(8, world), most);
  const int64_t high = std::max(low, std::min(std::max<int64_t>(32, 8 * world), most));
  const double mixed = std::nearbyint(static_cast<double>(low) + progress() * static_cast<double>(high - low));
  return std::clamp<int64_t>(static_cast<int64_t>(mixed), 1, most);
}

void CoprimeSampler::next(std::span<Window> out) {
  FAIRWAY_ASSERT(static_cast<int64_t>(out.size()) == windows_, "a plan of another size than the sampler's was asked for");
  weigh();
  choose();
  count();
  fill_buckets();
  interleave();
  const auto world = static_cast<size_t>(options_.world), rows = static_cast<size_t>(options_.rows);
  for (size_t rank = 0; rank < world; ++rank)
    for (size_t row = 0; row < rows; ++row) out[rank * rows + row] = list_[row * world + rank];
  ++plans_;
}

void CoprimeSampler::weigh() {
  const double alpha = options_.alpha_first + (options_.alpha_last - options_.alpha_first) * progress();
  bool finite = true;
  for (size_t i = 0; i < eligible_.size(); ++i) {
    const Cursor& cursor = cursors_[eligible_[i]];
    const uint64_t fresh = (corpus_.tokens[eligible_[i]] - 1) / static_cast<uint64_t>(options_.length);
    const uint64_t remaining = cursor.begun && cursor.next < cursor.blocks ? cursor.blocks - cursor.next : fresh;
    weights_[i] = std::pow(static_cast<double>(std::max<uint64_t>(remaining, 1)), alpha);
    finite = finite && std::isfinite(weights_[i]) && weights_[i] > 0;
  }
  if (!finite) std::fill(weights_.begin(), weights_.end(), 1.0);
}

// Weighted sampling without replacement; a chosen shard's weight moves to chosen_weights_.
void CoprimeSampler::choose() {
  chosen_.clear();
  chosen_weights_.clear();
  const int64_t wanted = mix();
  for (int64_t n = 0; n < wanted; ++n) {
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    const size_t pick = draw(rng_, weights_.size(), sum, [&](size_t i) { return weights_[i]; });
    chosen_.push_back(pick);
    chosen_weights_.push_back(weights_[pick]);
    weights_[pick] = 0;
  }
}

void CoprimeSampler::count() {
  counts_.assign(chosen_.size(), 1);
  const double sum = std::accumulate(chosen_weights_.begin(), chosen_weights_.end(), 0.0);
  for (int64_t n = windows_ - static_cast<int64_t>(chosen_.size()); n > 0; --n)
    ++counts_[draw(rng_, chosen_.size(), sum, [&](size_t i) { return chosen_weights_[i]; })];
}

void CoprimeSampler::fill_buckets() {
  for (size_t i = chosen_.size(); i > 1; --i) {
    const size_t j = rng_.below(i);
    std::swap(chosen_[i - 1], chosen_[j]);
    std::swap(counts_[i - 1], counts_[j]);
  }
  begin_.clear();
  size_t at = 0;
  for (size_t i = 0; i < chosen_.size(); ++i) {
    begin_.push_back(static_cast<int64_t>(at));
    const size_t shard = eligible_[chosen_[i]], first = at;
    for (int64_t n = 0; n < counts_[i]; ++n) bucket_[at++] = {static_cast<uint32_t>(shard), take(shard)};
    rng_.shuffle(std::span(bucket_).subspan(first, at - first));
  }
}

// Rounds over the non-empty buckets, each in a fresh random order, one window from each.
void CoprimeSampler::interleave() {
  order_.resize(chosen_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  size_t at = 0;
  while (!order_.empty()) {
    rng_.shuffle(std::span(order_));
    size_t kept = 0;
    for (const size_t i : order_) {
      list_[at++] = bucket_[static_cast<size_t>(begin_[i] + --counts_[i])];
      if (counts_[i] > 0) order_[kept++] = i;
    }
    order_.resize(kept);
  }
}

void CoprimeSampler::reset(size_t shard) {
  const auto length = static_cast<uint64_t>(options_.length);
  const uint64_t tokens = corpus_.tokens[shard];
  Cursor& cursor = cursors_[shard];
  cursor.phase = rng_.below(std::min(length - 1, tokens - length - 1) + 1);
  cursor.blocks = (tokens - 1 - cursor.phase) / length;
  cursor.next = 0;
  cursor.start = rng_.below(cursor.blocks);
  cursor.stride = 1;
  if (cursor.blocks > 1) {
    do cursor.stride = 1 + rng_.below(cursor.blocks - 1);
    while (std::gcd(cursor.stride, cursor.blocks) != 1);
  }
  cursor.begun = true;
}

uint64_t CoprimeSampler::take(size_t shard) {
  Cursor& cursor = cursors_[shard];
  if (!cursor.begun || cursor.next >= cursor.blocks) reset(shard);
  const uint64_t block = (cursor.start + cursor.next++ * cursor.stride) % cursor.blocks;  // blocks < 2^31: no overflow
  return cursor.phase + block * static_cast<uint64_t>(options_.length);
}

void CoprimeSampler::save(std::vector<std::byte>& out) const {
  StateWriter writer(out);
  writer.put(state_key(options_, corpus_));
  writer.put(rng_.save());
  writer.put(static_cast<uint64_t>(plans_));
  for (const Cursor& cursor : cursors_)
    for (const uint64_t word : {cursor.phase, cursor.blocks, cursor.next, cursor.start, cursor.stride, uint64_t{cursor.begun}})
      writer.put(word);
}

void CoprimeSampler::restore(std::span<const std::byte> state) {
  StateReader reader(state);
  reader.expect(state_key(options_, corpus_), "the saved data position belongs to other shards or another data recipe");
  const RngState rng = reader.rng();
  const uint64_t plans = reader.word(INT64_MAX);
  std::vector<Cursor> cursors(cursors_.size());
  const auto length = static_cast<uint64_t>(options_.length);
  for (size_t i = 0; i < cursors.size(); ++i) {
    Cursor& cursor = cursors[i];
    cursor.phase = reader.word(length);
    cursor.blocks = reader.word(corpus_.tokens[i] / length);
    cursor.next = reader.word(cursor.blocks);
    cursor.start = reader.word(cursor.blocks);
    cursor.stride = reader.word(std::max<uint64_t>(cursor.blocks, 1));
    cursor.begun = reader.word(1) != 0;
    if (cursor.blocks * length + cursor.phase + 1 > std::max<uint64_t>(corpus_.tokens[i], 1) ||
        (cursor.begun && cursor.blocks == 0))
      if (cursor.begun) throw InputError("the saved data position lies outside its shard");
  }
  reader.end();
  rng_.restore(rng);
  plans_ = static_cast<int64_t>(plans);
  cursors_ = std::move(cursors);
}

}  // namespace fairway::data
