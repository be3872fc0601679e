// Ranks as threads of one process: the calls of communicator.h on memory that all of them see. For tests, and for the audit,
// which tries whether the number of ranks changes a score.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "comm/communicator.h"

namespace fairway {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : size_(size), posted_(static_cast<size_t>(size)) {}

  // Calls body(communicator) on `size` threads and returns the counters of each. If one throws, the others do when they next
  // wait for it, and run() throws what was thrown first.
  std::vector<CommCounters> run(const std::function<void(Communicator&)>& body);

 private:
  class Rank;
  void meet();  // returns when all ranks have called it
  void fail(std::exception_ptr why);

  int size_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int here_ = 0;
  int64_t meetings_ = 0;
  std::exception_ptr failure_;
  std::vector<const std::byte*> posted_;  // of each rank, what the others read between two meetings
};

}  // namespace fairway
