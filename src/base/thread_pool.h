// A fixed team of threads for parallel loops. No allocation per loop, no work stealing, and nothing a loop computes may
// depend on how many threads there are: bodies write disjoint outputs, reductions go over fixed chunks (ops/cpu/chunks.h).
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

  // Calls body(i) once for each i in [0, count), on any thread, and returns when all are done. Not re-entrant.
  template <class Body>
  void parallel_for(int64_t count, Body&& body) {
    run(
        count, [](void* context, int64_t i) { (*static_cast<std::remove_reference_t<Body>*>(context))(i); }, &body);
  }

 private:
  using Thunk = void (*)(void*, int64_t);
  void run(int64_t count, Thunk thunk, void* context);
  void drain();
  void worker();

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> busy_{0};
  std::atomic<int64_t> next_{0};
  int64_t count_ = 0;
  Thunk thunk_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
};

int hardware_threads();

}  // namespace fairway
