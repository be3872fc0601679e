// Averaged weights to one artifact file at or under a byte budget.
#pragma once

#include "base/writer_lock.h"
#include "comm/communicator.h"
#include "pack/fit.h"
#include "stages/machine.h"
#include "stages/requests.h"

namespace fairway {

inline constexpr uint64_t kChallengeBytes = 16'000'000;  // code and model together (scoring spec §6.1)

struct Packed {
  Fitted fitted;
  std::string path;              // of the artifact
  std::filesystem::path folder;  // of the run; empty for a lone weight file
  uint64_t budget = 0;
  uint64_t tokenizer_bytes = 0;  // of the file, where it carries its tokenizer
  Calibration calibration = Calibration::self;
  double calibration_seconds = 0, fit_seconds = 0;
  std::vector<std::pair<std::string, double>> stages;  // seconds of each part of both
  std::vector<WriterLock> locks;  // of the artifact and the run's folder, until its caller has written what belongs there
};
// `code_bytes` count against the challenge's limit where the request has no budget. Ranks share the work, rank 0 writes the
// file. Collective.
Packed pack_stage(const PackRequest& request, uint64_t code_bytes, const Compute& compute, Communicator& comm);

}  // namespace fairway
