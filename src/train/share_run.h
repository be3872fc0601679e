// A checkpoint among several processes: rank 0 reads and writes the files, the others hear of them.
#pragma once

#include "train/checkpoint.h"

namespace fairway {

// load_checkpoint() on rank 0, then its weights, optimizer state and averages on every rank. Collective.
std::optional<RunState> load_on_all(const std::filesystem::path& folder, Trainer& trainer, const RunIdentity& run);

// What rank 0 decides after a step, since clocks differ; a signal to any rank counts for all.
struct Verdict {
  double elapsed = 0;    // seconds of training
  double next_step = 0;  // seconds the next step may take
  bool stop = false;     // a signal asks to save and end
  bool checkpoint = false;
};
Verdict agree(Communicator& comm, const Verdict& mine);

}  // namespace fairway
