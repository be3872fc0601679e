// A command whose operations go wrong one after another (base/fault.h). After each fault it is run again, and what it
// leaves must be what it leaves undisturbed.
#pragma once

#include <map>

#include "app/world.h"

struct Trial {
  Args args;                  // the command
  Args again;                 // how it goes on; empty: as it began
  Path place;                 // the folder it writes to; removed before each trial
  bool makes_folder = false;  // before the command, which needs it
  std::string done;           // what a second run says when the first had done all its work; empty: it does it again
  size_t ci =
      10;  // faults of each kind that `make test` tries; FAIRWAY_TORTURE=all tries every one, =stop every one of that kind
};

// The files of a folder by name, without what a second run may change: times, and a checkpoint before the last.
std::map<std::string, std::string> lasting_files(const Path& folder);

// Tells on standard output how many faults were tried.
void expect_faults_survived(const Trial& trial);
