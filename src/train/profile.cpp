#include "train/profile.h"

#include "base/file.h"
#include "base/timeline.h"
#include "comm/share_bytes.h"

namespace fairway {
namespace {

constexpr int64_t kFirst = 3, kLast = 7;

}  // namespace

void Profile::before_step() {
  if (path_.empty()) return;
  ++steps_;
  Timeline::record(steps_ >= kFirst && steps_ <= kLast);
  if (steps_ == kFirst) origin_ = Timeline::now();
}

void Profile::write(Communicator& comm) {
  if (path_.empty()) return;
  Timeline::record(true);
  comm.broadcast(make_view(&origin_, {{1}, DType::f64}));  // ranks of one machine have one clock
  const std::string own = Timeline::active()->events(comm.rank(), origin_);
  Timeline::record(false);
  const std::vector<std::string> all = gather_bytes(comm, own);
  if (comm.root()) write_file_atomic(path_, Timeline::trace(all));
}

}  // namespace fairway
