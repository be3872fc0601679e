#include "train/profile.h"

#include "backends/op_table.h"
#include "base/file.h"
#include "base/timeline.h"
#include "comm/share_bytes.h"

namespace fairway {
namespace {

constexpr int64_t kFirst = 3, kLast = 7;
constexpr int kTimedPasses = 3;

}  // namespace

void Profile::before_step() {
  if (path_.empty()) return;
  ++steps_;
  Timeline::record(steps_ >= kFirst && steps_ <= kLast);
  if (steps_ == kFirst) origin_ = seconds_now();
}

std::string Profile::write(Communicator& comm, Executor& executor, Session& passes, double peak_flops) {
  if (path_.empty()) return {};
  Timeline::record(true);
  comm.broadcast(make_view(&origin_, {{1}, DType::f64}));  // ranks of one machine have one clock
  const std::string own = Timeline::active()->events(comm.rank(), origin_);
  Timeline::record(false);
  const std::vector<std::string> all = gather_bytes(comm, own);
  if (!comm.root()) return {};
  const Peaks peaks{peak_flops, peak_bytes_of(executor)};
  const std::vector<OpLine> ops = op_table(executor, passes, kTimedPasses);
  write_file_atomic(path_, Timeline::trace(all, op_table_json(ops, peaks)));
  double total = 0;
  for (const OpLine& line : ops) total += line.seconds;
  return print_op_table(ops, total, peaks);
}

}  // namespace fairway
