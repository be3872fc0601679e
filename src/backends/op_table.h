// Where the time of a program goes, op by op, and how far each op is from what the machine and its makers' libraries can do.
#pragma once

#include <string>
#include <vector>

#include "autograd/executor.h"

namespace fairway {

struct OpLine {
  std::string name;  // "attention", "attention'" for backward
  int64_t calls = 0;
  double seconds = 0;          // of all calls
  double flops = 0;            // of matrix products and attention
  double bytes = 0;            // least traffic: every tensor an op must read or write, once
  double library_seconds = 0;  // of the same matrix work by the maker's library; 0: it has none
};

// What a machine could do at best; 0 where it is not known.
struct Peaks {
  double flops = 0;  // a second
  double bytes = 0;
  // Share of the best possible speed: the larger of arithmetic and traffic over what was needed.
  double share_of(const OpLine& line) const;
};

// Bytes of every tensor the call must read or write, once; twice where it adds to what is there.
double traffic_of(const BoundCall& call);

double peak_bytes_of(const Executor&);  // of its memory, a second; 0 if not known

// Runs the program `repeats` times, each call timed by itself; largest first. What the program last computed is lost.
std::vector<OpLine> op_table(Executor& executor, Session& session, int repeats);

// One line an op; `total` is what shares are of.
std::string print_op_table(const std::vector<OpLine>& lines, double total, const Peaks& peaks);
std::string op_table_json(const std::vector<OpLine>& lines, const Peaks& peaks);  // a list

}  // namespace fairway
