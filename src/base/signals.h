// SIGINT, SIGTERM, SIGHUP (a terminal that went away) and SIGUSR1 (which mpirun and Slurm hand on) as a request to save and
// stop; the handlers are put back when the object goes. A second SIGINT ends at once. What nohup ignores stays ignored.
#pragma once

#include <array>
#include <csignal>

namespace fairway {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  bool requested() const;

 private:
  static constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGUSR1, SIGHUP};
  std::array<struct sigaction, kSignals.size()> old_{};
};

}  // namespace fairway
