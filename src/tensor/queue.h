// Where work is enqueued: a team of CPU threads here, a stream on a device. Ops receive it and never own one.
#pragma once

#include "base/thread_pool.h"

namespace fairway {

class Queue {
 public:
  explicit Queue(int threads) : pool_(threads) {}
  ThreadPool& pool() { return pool_; }

 private:
  ThreadPool pool_;
};

}  // namespace fairway
