// The timeline of a few steps of a run, of all ranks, as one file (base/timeline.h), with the table of where a step's passes
// spend their time (backends/op_table.h).
#pragma once

#include <filesystem>

#include "backends/backends.h"
#include "comm/communicator.h"

namespace fairway {

class Profile {
 public:
  // Nothing happens when the path is empty. Of the steps of this process the third to the seventh are recorded: the first ones
  // allocate memory and capture graphs.
  explicit Profile(std::filesystem::path path) : path_(std::move(path)) {}
  void before_step();
  // On rank 0, which also gives the table as text. Collective; after the last step, since the passes run again to be timed.
  std::string write(Communicator& comm, Executor& executor, Session& passes, double peak_flops);

 private:
  std::filesystem::path path_;
  int64_t steps_ = 0;
  double origin_ = 0;
};

}  // namespace fairway
