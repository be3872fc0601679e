// SIGINT, SIGTERM and SIGUSR1 (which mpirun and Slurm hand on) as a request to save and stop; the handlers are put back when
// the object goes. A second SIGINT ends at once.
#pragma once

#include <csignal>

namespace fairway {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  bool requested() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
  struct sigaction old_user_ {};
};

}  // namespace fairway
