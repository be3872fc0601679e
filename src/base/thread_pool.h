// A fixed team of threads for parallel loops. No allocation per loop, no work stealing, and nothing a loop computes may
// depend on how many threads there are: bodies write disjoint outputs, reductions go over fixed chunks (ops/cpu/chunks.h).
// A loop ends when its items are done, not when every worker has come by: one that the machine keeps off its cores costs
// nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fairway {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // the caller counts as one of them
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(i) once for each i in [0, count), on any thread, and returns when all are done; count < 2^32. After a body has
  // thrown, those not yet begun are skipped and the first exception is thrown here. Not re-entrant.
  template <class Body>
  void parallel_for(int64_t count, Body&& body) {
    run(
        count, [](void* context, int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); }, &body);
  }
  // The same with body(slot, i): slot in [0, slots) belongs to no other call at the time, so that it can name scratch.
  template <class Body>
  void parallel_for_slots(int64_t slots, int64_t count, Body&& body) {
    std::atomic<int64_t> next{0};
    parallel_for(slots, [&](int64_t slot) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(slot, i);
    });
  }

 private:
  using Thunk = void (*)(void*, int64_t);
  void run(int64_t count, Thunk thunk, void* context);
  void drain();
  void call(Thunk thunk, void* context, int64_t i);
  void worker();
  bool open() const { return static_cast<uint32_t>(ticket_.load()) != 0; }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};

  // Loop number << 32 | items not yet taken. Items are taken by compare-and-swap, which fails once the loop is another.
  std::atomic<uint64_t> ticket_{0};
  // The loop. Written only while no item is left to take; atomic because a late worker may read them then (and take nothing).
  std::atomic<int64_t> count_{0};
  std::atomic<Thunk> thunk_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // under mutex_ until the loop is done
};

int hardware_threads();

// body(i) for each i in [0, count): by the pool, or where there is none by the caller alone.
template <class Body>
void for_each_index(ThreadPool* pool, size_t count, Body&& body) {
  auto at = [&](int64_t i) { body(static_cast<size_t>(i)); };
  if (pool != nullptr) return pool->parallel_for(static_cast<int64_t>(count), at);
  for (size_t i = 0; i < count; ++i) body(i);
}

}  // namespace fairway
