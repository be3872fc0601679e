// How the processes of a run exchange numbers (spec §9). Large exchanges are started first and waited for later, so that work
// goes on between; everything is called by all ranks in the same order. Tensors of start_…() may lie on a device, in the order
// of the queue that follow() names; those of other calls are the host's.
#pragma once

#include <span>
#include <string>

#include "tensor/queue.h"

namespace fairway {

struct Traffic {
  int64_t calls = 0;
  int64_t bytes = 0;  // that one rank sends to others, by the formulas of a ring
  bool operator==(const Traffic&) const = default;
};

struct CommCounters {
  Traffic exchange;    // (n−1)/n of the full buffer
  Traffic all_gather;  // (n−1)/n of the full buffer
  Traffic all_reduce;  // 2(n−1)/n of the numbers
  Traffic gather;      // all of it, unless this rank is the one that it goes to
  Traffic broadcast;   // all of it
  CommCounters since(const CommCounters& before) const;
  void add(const CommCounters& more);
};

class Communicator {
 public:
  using Request = size_t;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_size() const { return size(); }  // ranks on this machine
  bool root() const { return rank() == 0; }
  // Whether updates are shared between ranks. One rank alone does so only to try a library.
  virtual bool shares_updates() const { return size() > 1; }
  // Whether wait() blocks the host. If not, exchanges of device tensors may be captured in a graph.
  virtual bool host_waits() const { return true; }

  void barrier();
  void broadcast(const Tensor& data, int from = 0);
  // Element-wise sum over ranks, in an order the library chooses: exact where at most one rank's element is not zero.
  void all_reduce(std::span<double> values);

  // Cuts `full` into n equal pieces and sends piece r to rank r; what rank q sent lies at piece q of `received`. Adding those
  // in the order of comm/tree.h makes it a reduce-scatter whose bits do not depend on the library.
  Request start_exchange(const Tensor& full, const Tensor& received);
  // Rank r's shard becomes piece r of `full` everywhere.
  Request start_all_gather(const Tensor& shard, const Tensor& full);
  // Every rank's `part` goes to rank `to`: that of rank q comes to lie q·stride elements behind the beginning of `all`, which
  // the others do not have.
  Request start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to);
  void wait(Request request);   // buffers of a request are the communicator's until then
  virtual void progress() = 0;  // lets started exchanges move; costs little

  // Ends every rank with this exit status. The first to fail prints the sentence; nothing is printed twice.
  [[noreturn]] virtual void end_all(const std::string& sentence, int status) = 0;

  // Device tensors are made and read in the order of this queue.
  virtual void follow(const Queue& queue) { queue_ = &queue; }

  const CommCounters& counters() const { return counters_; }
  void count_again(const CommCounters& more) { counters_.add(more); }  // of a graph that ran once more
  void name_next(std::string name) { next_name_ = std::move(name); }   // of the next exchange, in a timeline

 protected:
  const Queue* followed() const { return queue_; }  // null before follow()
  std::string take_name(const char* kind);

 private:
  virtual void do_barrier() = 0;
  virtual void do_broadcast(const Tensor& data, int from) = 0;
  virtual void do_all_reduce(std::span<double> values) = 0;
  virtual Request do_start_exchange(const Tensor& full, const Tensor& received) = 0;
  virtual Request do_start_all_gather(const Tensor& shard, const Tensor& full) = 0;
  virtual Request do_start_gather(const Tensor& part, const Tensor& all, int64_t stride, int to) = 0;
  virtual void do_wait(Request request) = 0;

  CommCounters counters_;
  const Queue* queue_ = nullptr;
  std::string next_name_;
};

// A run of one process. Shared by everything that needs no ranks; nothing it does has a state but the counters.
Communicator& single_process();

}  // namespace fairway
