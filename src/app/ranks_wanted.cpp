#include "app/ranks_wanted.h"

#include <fmt/core.h>

#include <algorithm>

#include "backends/backends.h"
#include "base/error.h"
#include "comm/launch.h"
#include "comm/start_ranks.h"
#include "ops/cuda/device.h"

namespace fairway::app {
namespace {

void require_gpus(int wanted, const std::string& backend) {
  const size_t devices = cuda::devices().size();
  if (devices == 0)
    throw InputError(
        fmt::format("--gpus {}: no GPU is here that this program can use (fairway doctor tells why); --ranks {} "
                    "starts ranks on the CPU",
                    wanted, wanted));
  const Backend chosen = parse_backend(backend);
  if (chosen == Backend::cpu || chosen == Backend::ref)
    throw InputError(fmt::format("--gpus {}: --backend {} uses no GPU; expected --backend cuda, or --ranks {} for the CPU",
                                 wanted, backend, wanted));
  if (static_cast<size_t>(wanted) > devices)
    throw InputError(
        fmt::format("--gpus {}: this program can use {} GPU{} here; expected at most {} (--ranks {} lets ranks share)", wanted,
                    devices, devices == 1 ? "" : "s", devices, wanted));
}

}  // namespace

void add_ranks_wanted(CLI::App& command, RanksWanted& wanted) {
  command.add_option("--gpus", wanted.gpus, "share the work among this many GPUs of this machine, one rank on each")
      ->check(CLI::Range(1, kMostOwnRanks));
  command.add_option("--ranks", wanted.ranks, "share the work among this many processes; on the CPU, or sharing a GPU")
      ->check(CLI::Range(1, kMostOwnRanks));
}

int ranks_to_start(const RanksWanted& wanted, const std::string& backend) {
  if (wanted.gpus == 0 && wanted.ranks == 0) return 1;
  const Launch launch = find_launch();
  if (launch.kind == Launch::Kind::own) return 1;
  if (wanted.gpus != 0 && wanted.ranks != 0) throw InputError("--gpus and --ranks: give only one of them");
  const int count = std::max(wanted.gpus, wanted.ranks);
  if (launch.kind != Launch::Kind::alone)
    throw InputError(fmt::format("--{} {}: {} = {} tells that a launcher has started ranks already; leave one of them out",
                                 wanted.gpus != 0 ? "gpus" : "ranks", count, launch.variable, launch.size));
  if (wanted.gpus != 0) require_gpus(wanted.gpus, backend);
  return count;
}

}  // namespace fairway::app
