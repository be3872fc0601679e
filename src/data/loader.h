// Micro-batches for training: a thread plans and reads ahead into a ring of buffers made at start, so that the training loop
// finds its next batch ready. The state that is saved is that of the batches handed out, whatever was read ahead.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "data/sampler.h"
#include "tensor/tensor.h"

namespace fairway::data {

struct Batch {
  Tensor tokens;         // i32 [B, T]
  Tensor targets;        // i32 [B, T]
  Tensor segment_start;  // i32 [B * T], only with docpack: flat index of the first token of each token's segment
  int64_t step = 0;      // plans handed out before this one, since the loader was made
  int emulated_rank = 0;
};

struct LoaderOptions {
  int rank = 0, ranks = 1;  // of this process; ranks must divide the emulated world
  int64_t split = 1;        // micro-batches each emulated rank's rows are cut into; must divide them
  int queue = 4;            // batches read ahead
  int vocab = 0;            // tokens at or above it are an InputError; 0: not checked
};

// Micro-batch i of a step belongs to emulated rank rank·world/ranks + i/split: a process has a run of neighbours, whose
// gradients it can add before it meets the others'.
class Loader {
 public:
  Loader(const ShardSet& shards, const SamplerOptions& sampling, const LoaderOptions& options);  // `shards` must outlive it
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next micro-batch, valid until the next call. Throws what the reading thread met, after the batches before it.
  const Batch& next();
  int64_t batches_per_step() const { return batches_per_step_; }

  // The state after which next() of a restored loader gives what next() here would give now.
  std::vector<std::byte> save() const;
  void restore(std::span<const std::byte> state);

  double waited_seconds() const { return waited_; }  // spent inside next() until a batch was ready

 private:
  struct Slot {
    Batch batch;
    std::vector<std::byte> after;  // sampler state from which the batch after this one is planned
    int64_t after_index = 0;       // and which micro-batch of that plan it is
  };

  void start();
  void stop();
  void produce(std::stop_token token);
  Slot* claim(std::stop_token token);
  void fill(Slot& slot, int64_t index);
  void read_windows(Slot& slot, std::span<const Window> windows);

  const ShardSet& shards_;
  SamplerOptions sampling_;
  LoaderOptions options_;
  std::unique_ptr<Sampler> sampler_;
  int64_t batches_per_step_ = 1, rows_ = 1;

  // Used by the thread alone while it runs.
  std::vector<Window> plan_;
  std::vector<std::byte> before_, behind_;  // sampler state before and after plan_
  std::vector<uint32_t> order_;
  std::vector<Cut> cuts_;
  std::vector<uint16_t> seam_;  // a window that crosses shards
  int64_t first_index_ = 0, step_ = 0;

  std::shared_ptr<std::byte> memory_;
  std::vector<Slot> slots_;
  std::vector<std::byte> saved_;  // state of what was handed out
  int64_t saved_index_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t filled_ = 0, taken_ = 0;  // batches ever filled and handed out; the slot in use is taken_ - 1
  std::exception_ptr error_;
  double waited_ = 0;
  std::jthread thread_;
};

}  // namespace fairway::data
