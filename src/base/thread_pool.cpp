#include "base/thread_pool.h"

#include <algorithm>
#include <utility>

namespace fairway {
namespace {

// Loops follow each other within microseconds during a step, so a worker spins this long before it sleeps.
constexpr int kSpins = 4000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

int hardware_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (auto& thread : workers_) thread.join();
}

void ThreadPool::drain() {
  try {
    for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;) thunk_(context_, i);
  } catch (...) {
    next_.store(count_, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::run(int64_t count, Thunk thunk, void* context) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t i = 0; i < count; ++i) thunk(context, i);
    return;
  }
  count_ = count;
  thunk_ = thunk;
  context_ = context;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    ++generation_;
  }
  wake_.notify_all();
  drain();
  for (int spins = 0; busy_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins)
      pause_cpu();
    else
      std::this_thread::yield();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::worker() {
  for (uint64_t seen = 0;;) {
    for (int spins = 0; generation_.load(std::memory_order_acquire) == seen && spins < kSpins; ++spins) pause_cpu();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    drain();
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace fairway
