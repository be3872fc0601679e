// What tests of several processes share: the small run that they are compared with, and a look at processes.
#pragma once

#include <gtest/gtest.h>

#include "app/world.h"

size_t occurrences(const std::string& text, const std::string& what);

// The processes whose parent is `parent`, in rising order: rank 0 is started first.
std::vector<pid_t> children_of(pid_t parent);
bool ended(pid_t pid);  // gone, or dead and waiting for a parent to notice; waits a while for it

class RanksWorld : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Four emulated ranks with one micro-batch each.
  Args train(const std::string& run, int steps, const Args& more = {}) const;
  RunBytes straight(int steps);  // by one process, in the folder "straight"
  size_t records(const std::string& run) const;
  void wait_for_records(Child& child, const std::string& run, size_t count) const;
  // Waits until the launcher has started them all.
  static std::vector<pid_t> ranks_of(Child& launcher, size_t count);

  ScratchFolder scratch_;
};
