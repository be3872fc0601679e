#include "base/thread_pool.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"

namespace fairway {
namespace {

// Loops follow each other within microseconds during a step, so a worker spins this long before it sleeps.
constexpr int kSpins = 4000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // waits a little; most cores take `yield` for nothing
#else
  std::this_thread::yield();
#endif
}

// Processors' worth of time that a container may use, rounded up; a large number where nothing limits it. More threads than
// that wait for each other while they are held back.
int container_limit() {
  std::ifstream unified("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;  // of "max 100000" neither is read
  if (unified) {
    unified >> quota >> period;
  } else {
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  }
  if (!(quota > 0) || !(period > 0) || quota / period > 1e6) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

void end_team(std::vector<std::thread>& workers, std::mutex& mutex, std::condition_variable& wake, std::atomic<bool>& stop) {
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  wake.notify_all();
  for (auto& thread : workers) thread.join();
}

}  // namespace

int hardware_threads() {
  const auto processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::min(processors, container_limit());
}

ThreadPool::ThreadPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
  } catch (const std::exception& error) {
    end_team(workers_, mutex_, wake_, stop_);  // those that did start
    throw WorkError("a team of " + std::to_string(threads) + " threads could not be started (" + error.what() +
                    "): not enough memory or threads are left here; give fewer --threads");
  }
}

ThreadPool::~ThreadPool() { end_team(workers_, mutex_, wake_, stop_); }

void ThreadPool::call(Thunk thunk, void* context, int64_t i) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    thunk(context, i);
  } catch (...) {
    failed_.store(true, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

// What is read of the loop before the swap belongs to the ticket's loop if the swap succeeds: an item of that loop was still to
// be taken, so it was not over, and the next one had not been written.
void ThreadPool::drain() {
  int64_t mine = 0;
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(ticket) != 0) {
    const int64_t i = count_.load(std::memory_order_relaxed) - static_cast<uint32_t>(ticket);
    const Thunk thunk = thunk_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    call(thunk, context, i);
    ++mine;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  if (mine > 0) done_.fetch_add(mine, std::memory_order_release);
}

void ThreadPool::run(int64_t count, Thunk thunk, void* context) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t i = 0; i < count; ++i) thunk(context, i);
    return;
  }
  FAIRWAY_ASSERT(count <= std::numeric_limits<uint32_t>::max(), "a loop has less than 2^32 items");
  count_.store(count, std::memory_order_relaxed);
  thunk_.store(thunk, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  const uint64_t loop = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_.store(loop << 32 | static_cast<uint64_t>(count));
  if (sleepers_.load() > 0) {  // either this sees the sleeper or the sleeper sees the ticket: both sides are sequential
    { std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  drain();
  for (int spins = 0; done_.load(std::memory_order_acquire) != count; ++spins) {
    if (spins < kSpins)
      pause_cpu();
    else
      std::this_thread::yield();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::worker() {
  while (!stop_) {
    for (int spins = 0; !open() && spins < kSpins; ++spins) pause_cpu();
    if (!open()) {
      std::unique_lock lock(mutex_);
      ++sleepers_;
      wake_.wait(lock, [&] { return open() || stop_; });
      --sleepers_;
    }
    drain();
  }
}

}  // namespace fairway
