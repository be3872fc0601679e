#include "pack/shared_hessians.h"

#include <bit>
#include <sstream>

#include "base/error.h"
#include "comm/share_bytes.h"
#include "comm/tree.h"

namespace fairway {
namespace {

// Names and sizes of rank 0's points, which has seen all of them: the first batch is its.
std::vector<std::pair<std::string, int64_t>> points_of(const HessianStore& store, Communicator& comm) {
  std::ostringstream told;
  for (const auto& [point, hessian] : store.all()) told << point << ' ' << hessian.side << '\n';
  std::string text = told.str();
  share_bytes(comm, text, 0);
  std::vector<std::pair<std::string, int64_t>> out;
  std::istringstream lines(text);
  std::string point;
  for (int64_t side = 0; lines >> point >> side;) out.emplace_back(point, side);
  return out;
}

}  // namespace

SharedHessians::SharedHessians(OpSite site, Communicator& comm, int64_t batches)
    : site_(site), comm_(&comm), batches_(batches), first_(part_of(comm, kGroups).begin) {
  groups_ = part_of(comm, kGroups).end - first_;
  if (groups_ > 0) open_ = std::make_unique<HessianStore>(site);
}

int SharedHessians::workers(const Communicator& comm) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(comm.size(), kGroups))));
}

SharedHessians::Part SharedHessians::part_of(const Communicator& comm, int64_t count) {
  const int64_t workers = SharedHessians::workers(comm);
  if (comm.rank() >= workers) return {count, count};
  return {count * comm.rank() / workers, count * (comm.rank() + 1) / workers};
}

int64_t SharedHessians::group_of(int64_t batch) const { return batch * kGroups / batches_; }

bool SharedHessians::mine(int64_t batch) const {
  const int64_t group = group_of(batch);
  return group >= first_ && group < first_ + groups_;
}

bool SharedHessians::ends_group(int64_t batch) const { return batch + 1 == batches_ || group_of(batch + 1) != group_of(batch); }

void SharedHessians::close_group() {
  stack_.push_back(std::move(*open_));
  for (int k = carries_after(closed_); k > 0; --k) {
    stack_[stack_.size() - 2].add(stack_.back());
    stack_.pop_back();
  }
  ++closed_;
  open_ = closed_ < groups_ ? std::make_unique<HessianStore>(site_) : nullptr;
}

HessianStore& SharedHessians::store_for(int64_t batch) {
  FAIRWAY_ASSERT(mine(batch), "a batch of another rank");
  while (first_ + closed_ < group_of(batch)) close_group();
  return *open_;
}

HessianStore SharedHessians::finish(std::vector<std::string>& problems) {
  while (closed_ < groups_) close_group();
  HessianStore whole = exchange(stack_.empty() ? HessianStore(site_) : std::move(stack_.front()));
  problems = whole.finish();
  return whole;
}

HessianStore SharedHessians::exchange(HessianStore mine) {
  if (comm_->size() == 1) return mine;
  HessianStore out(site_);
  double batches = mine.batches();
  comm_->all_reduce({&batches, 1});  // whole numbers: exact in any order
  out.set_batches(batches);
  const auto ranks = static_cast<size_t>(comm_->size());
  for (const auto& [point, side] : points_of(mine, *comm_)) {
    const auto count = static_cast<size_t>(side * side);
    const Hessian* own = mine.find(point);
    std::vector<double> sent = own != nullptr ? own->values : std::vector<double>(count), all(ranks * count);
    comm_->wait(comm_->start_all_gather(make_view(sent.data(), {{side * side}, DType::f64}),
                                        make_view(all.data(), {{comm_->size() * side * side}, DType::f64})));
    for (const auto& [to, from] : tree_additions(workers(*comm_))) {
      double* target = all.data() + static_cast<size_t>(to) * count;
      const double* source = all.data() + static_cast<size_t>(from) * count;
      for (size_t i = 0; i < count; ++i) target[i] += source[i];
    }
    all.resize(count);
    out.put(point, side, std::move(all));
  }
  return out;
}

}  // namespace fairway
