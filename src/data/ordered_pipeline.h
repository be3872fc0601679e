// Read, work and write at once, in order: one thread fills jobs, several work on them, the caller takes them as they were read.
// The ring bounds memory; an error surfaces at its place in the order, whatever finished first.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fairway::data {

template <class Job>
class OrderedPipeline {
 public:
  explicit OrderedPipeline(int threads) : threads_(std::max(1, threads)), slots_(static_cast<size_t>(2 * threads_ + 2)) {}

  // read(job) -> false at the end; work(job) on any thread; write(job) on the calling thread, in the order of reading.
  template <class Read, class Work, class Write>
  void run(Read read, Work work, Write write) {
    std::vector<std::jthread> team;
    const StopOnExit stop{*this};  // declared after the team: it ends the threads before they are joined
    team.emplace_back([&] { read_all(read); });
    for (int i = 0; i < threads_; ++i) team.emplace_back([&] { work_all(work); });
    for (uint64_t n = 0;; ++n) {
      Slot& slot = slots_[n % slots_.size()];
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return slot.done || (ended_ && n == read_); });
        if (!slot.done) break;
      }
      if (slot.error) std::rethrow_exception(slot.error);
      write(slot.job);
      const std::lock_guard lock(mutex_);
      slot.done = false;
      written_ = n + 1;
      changed_.notify_all();
    }
    if (read_error_) std::rethrow_exception(read_error_);
  }

 private:
  struct Slot {
    Job job;
    bool done = false;
    std::exception_ptr error;
  };
  struct StopOnExit {
    OrderedPipeline& pipeline;
    ~StopOnExit() {
      const std::lock_guard lock(pipeline.mutex_);
      pipeline.stop_ = true;
      pipeline.changed_.notify_all();
    }
  };

  template <class Read>
  void read_all(Read& read) {
    for (;;) {
      uint64_t n = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || read_ - written_ < slots_.size(); });
        if (stop_) return;
        n = read_;
      }
      bool more = false;
      std::exception_ptr error;
      try {
        more = read(slots_[n % slots_.size()].job);
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      read_error_ = error;
      if (more)
        ++read_;
      else
        ended_ = true;
      changed_.notify_all();
      if (!more) return;
    }
  }

  template <class Work>
  void work_all(Work& work) {
    for (;;) {
      Slot* slot = nullptr;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || started_ < read_ || ended_; });
        if (stop_ || started_ == read_) return;
        slot = &slots_[started_++ % slots_.size()];
      }
      try {
        work(slot->job);
      } catch (...) {
        slot->error = std::current_exception();
      }
      const std::lock_guard lock(mutex_);
      slot->done = true;
      changed_.notify_all();
    }
  }

  int threads_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t read_ = 0, started_ = 0, written_ = 0;
  bool ended_ = false, stop_ = false;
  std::exception_ptr read_error_;
};

}  // namespace fairway::data
