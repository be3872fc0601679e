// How the processes of a run exchange numbers (spec §9). Large exchanges are started first and waited for later, so that work
// goes on between; everything is called by all ranks in the same order. Tensors say on which device they lie; an
// implementation refuses those it cannot carry.
#pragma once

#include <span>
#include <string>

#include "tensor/tensor.h"

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
  Traffic broadcast;   // all of it
};

class Communicator {
 public:
  using Request = size_t;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_size() const { return size(); }  // ranks on this machine
  bool root() const { return rank() == 0; }

  void barrier();
  void broadcast(const Tensor& data, int from = 0);
  // Element-wise sum over ranks, in an order the library chooses: exact where at most one rank's element is not zero.
  void all_reduce(std::span<double> values);

  // Cuts `full` into n equal pieces and sends piece r to rank r; what rank q sent lies at piece q of `received`. Adding those
  // in the order of comm/tree.h makes it a reduce-scatter whose bits do not depend on the library.
  Request start_exchange(const Tensor& full, const Tensor& received);
  // Rank r's shard becomes piece r of `full` everywhere.
  Request start_all_gather(const Tensor& shard, const Tensor& full);
  void wait(Request request);   // buffers of a request are the communicator's until then
  virtual void progress() = 0;  // lets started exchanges move; costs little

  // Ends every rank with this exit status. The first to fail prints the sentence; nothing is printed twice.
  [[noreturn]] virtual void end_all(const std::string& sentence, int status) = 0;

  const CommCounters& counters() const { return counters_; }

 private:
  virtual void do_barrier() = 0;
  virtual void do_broadcast(const Tensor& data, int from) = 0;
  virtual void do_all_reduce(std::span<double> values) = 0;
  virtual Request do_start_exchange(const Tensor& full, const Tensor& received) = 0;
  virtual Request do_start_all_gather(const Tensor& shard, const Tensor& full) = 0;
  virtual void do_wait(Request request) = 0;

  CommCounters counters_;
};

// A run of one process. Shared by everything that needs no ranks; nothing it does has a state but the counters.
Communicator& single_process();

}  // namespace fairway
