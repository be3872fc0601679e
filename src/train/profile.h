// The timeline of a few steps of a run, of all ranks, as one file (base/timeline.h).
#pragma once

#include <filesystem>

#include "comm/communicator.h"

namespace fairway {

class Profile {
 public:
  // Nothing happens when the path is empty. Of the steps of this process the third to the seventh are recorded: the first ones
  // allocate memory and capture graphs.
  explicit Profile(std::filesystem::path path) : path_(std::move(path)) {}
  void before_step();
  void write(Communicator& comm);  // on rank 0. Collective

 private:
  std::filesystem::path path_;
  int64_t steps_ = 0;
  double origin_ = 0;
};

}  // namespace fairway
