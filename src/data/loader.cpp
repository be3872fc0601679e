#include "data/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "data/samplers.h"
#include "recipe/segments.h"

namespace fairway::data {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<std::byte> allocate_aligned(size_t bytes) {
  return {static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})),
          [](std::byte* memory) { ::operator delete (memory, std::align_val_t{kAlignment}); }};
}

void check(const SamplerOptions& sampling, const LoaderOptions& options) {
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks || sampling.world % options.ranks != 0)
    throw InputError(
        fmt::format("process {} of {} cannot share a world of {} emulated ranks", options.rank, options.ranks, sampling.world));
  if (options.split < 1 || sampling.rows % options.split != 0)
    throw InputError(fmt::format("{} rows cannot be cut into {} micro-batches", sampling.rows, options.split));
  if (options.queue < 1) throw InputError(fmt::format("a queue of {} batches was asked for", options.queue));
}

}  // namespace

Loader::Loader(const ShardSet& shards, const SamplerOptions& sampling, const LoaderOptions& options)
    : shards_(shards),
      sampling_(sampling),
      options_(options),
      sampler_(make_sampler(sampling, corpus_of(shards, sampling.bos))) {
  check(sampling, options);
  batches_per_step_ = sampling.world / options.ranks * options.split;
  rows_ = sampling.rows / options.split;
  plan_.resize(static_cast<size_t>(sampling.rows * sampling.world));
  order_.resize(static_cast<size_t>(rows_));
  cuts_.reserve(static_cast<size_t>(rows_));
  seam_.resize(static_cast<size_t>(sampling.length) + 1);

  const bool packed = sampling.kind == SamplerKind::docpack;
  const auto tokens = static_cast<size_t>(rows_ * sampling.length);
  const size_t tensor_bytes = (tokens * sizeof(int32_t) + kAlignment - 1) / kAlignment * kAlignment;
  slots_.resize(static_cast<size_t>(options.queue) + 1);  // one more: the batch in the caller's hands
  memory_ = allocate_aligned(tensor_bytes * (packed ? 3 : 2) * slots_.size());
  std::byte* at = memory_.get();
  const auto take = [&](Shape shape) {
    Tensor view = make_view(at, {shape, DType::i32});
    at += tensor_bytes;
    return view;
  };
  for (Slot& slot : slots_) {
    slot.batch.tokens = take({rows_, sampling.length});
    slot.batch.targets = take({rows_, sampling.length});
    if (packed) slot.batch.segment_start = take({rows_ * sampling.length});
  }
  sampler_->save(saved_);
  start();
}

Loader::~Loader() { stop(); }

void Loader::start() {
  thread_ = std::jthread([this](std::stop_token token) { produce(token); });
}

void Loader::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

const Batch& Loader::next() {
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return filled_ > taken_ || error_; });
  waited_ += watch.seconds();
  if (filled_ == taken_) std::rethrow_exception(error_);
  Slot& slot = slots_[taken_++ % slots_.size()];
  std::swap(saved_, slot.after);
  saved_index_ = slot.after_index;
  lock.unlock();
  changed_.notify_all();
  return slot.batch;
}

std::vector<std::byte> Loader::save() const {
  const auto index = static_cast<uint64_t>(saved_index_);
  std::vector<std::byte> out(sizeof index + saved_.size());
  std::memcpy(out.data(), &index, sizeof index);
  std::memcpy(out.data() + sizeof index, saved_.data(), saved_.size());
  return out;
}

void Loader::restore(std::span<const std::byte> state) {
  StateReader reader(state);
  const uint64_t index = reader.word(static_cast<uint64_t>(batches_per_step_) - 1);
  stop();
  std::exception_ptr refused;
  try {
    sampler_->restore(state.subspan(sizeof(uint64_t)));
    sampler_->save(saved_);
    saved_index_ = static_cast<int64_t>(index);
  } catch (const InputError&) {
    refused = std::current_exception();  // go on from where this loader was
    sampler_->restore(saved_);
  }
  first_index_ = saved_index_;
  filled_ = taken_ = 0;
  step_ = 0;
  error_ = nullptr;
  start();
  if (refused) std::rethrow_exception(refused);
}

void Loader::produce(std::stop_token token) {
  try {
    for (int64_t index = first_index_;; index = 0, ++step_) {
      sampler_->save(before_);
      sampler_->next(plan_);
      sampler_->save(behind_);
      for (; index < batches_per_step_; ++index) {
        Slot* slot = claim(token);
        if (slot == nullptr) return;
        fill(*slot, index);
        {
          const std::lock_guard lock(mutex_);
          ++filled_;
        }
        changed_.notify_all();
      }
    }
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    changed_.notify_all();
  }
}

// A slot nobody uses: not one filled and waiting, nor the one in the caller's hands. Null when the loader is being stopped.
Loader::Slot* Loader::claim(std::stop_token token) {
  std::unique_lock lock(mutex_);
  const bool free = changed_.wait(lock, token, [&] { return filled_ - taken_ + (taken_ > 0 ? 1 : 0) < slots_.size(); });
  if (!free || token.stop_requested()) return nullptr;
  return &slots_[filled_ % slots_.size()];
}

void Loader::fill(Slot& slot, int64_t index) {
  const int64_t rank = options_.rank * (sampling_.world / options_.ranks) + index / options_.split;
  const auto first = static_cast<size_t>(rank * sampling_.rows + index % options_.split * rows_);
  slot.batch.step = step_;
  slot.batch.emulated_rank = static_cast<int>(rank);
  const bool last = index + 1 == batches_per_step_;
  slot.after = last ? behind_ : before_;
  slot.after_index = last ? 0 : index + 1;
  read_windows(slot, std::span<const Window>(plan_).subspan(first, static_cast<size_t>(rows_)));
  if (!slot.batch.segment_start) return;
  const auto tokens = static_cast<size_t>(slot.batch.tokens.numel());
  segment_starts({slot.batch.tokens.as<int32_t>(), tokens}, sampling_.length, {sampling_.bos, sampling_.max_segment},
                 {slot.batch.segment_start.as<int32_t>(), tokens});
}

// Windows are read shard by shard in rising order: adjacent ones share pages and readahead, and each shard is checked once.
void Loader::read_windows(Slot& slot, std::span<const Window> windows) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(windows[a].shard, windows[a].position) < std::pair(windows[b].shard, windows[b].position);
  });
  const auto length = static_cast<size_t>(sampling_.length);
  int32_t* tokens = slot.batch.tokens.as<int32_t>();
  int32_t* targets = slot.batch.targets.as<int32_t>();
  cuts_.clear();
  for (size_t i = 0; i < order_.size(); ++i) {
    const size_t row = order_[i];
    const Window& window = windows[row];
    const Shard& shard = shards_[window.shard];
    if (window.position + length + 1 <= shard.tokens()) {
      cuts_.push_back({window.position, tokens + row * length, targets + row * length});
    } else {
      shards_.read_wrapped(window, seam_);
      for (size_t t = 0; t <= length; ++t) {
        if (options_.vocab > 0 && seam_[t] >= options_.vocab)
          throw InputError(fmt::format("{}: token {} {} places after position {} is outside the vocabulary of {}",
                                       shard.path().string(), seam_[t], t, window.position, options_.vocab));
        if (t < length) tokens[row * length + t] = seam_[t];
        if (t > 0) targets[row * length + t - 1] = seam_[t];
      }
    }
    const bool ends = i + 1 == order_.size() || windows[order_[i + 1]].shard != window.shard;
    if (!ends || cuts_.empty()) continue;
    shard.cut(cuts_, sampling_.length, options_.vocab);
    cuts_.clear();
  }
}

}  // namespace fairway::data
