#include "score/gradient_sum.h"

#include <algorithm>
#include <bit>

#include "autograd/tape.h"
#include "comm/tree.h"

namespace fairway {
namespace {

constexpr int64_t kLine = static_cast<int64_t>(kArenaAlignment / sizeof(float));

int64_t padded_to(int64_t elements, int64_t ranks) {
  const int64_t unit = ranks * kLine;
  return (elements + unit - 1) / unit * unit;
}

// Adds the parts in the tree's order; the sum ends in the first.
std::unique_ptr<Session> record_sum(const std::vector<Tensor>& parts, Executor& executor) {
  Tape tape;
  tape.scope("sum of gradients");
  for (const auto& [to, from] : tree_additions(static_cast<int64_t>(parts.size()))) {
    tape.call(AccumulateScaled{}, {tape.input("part " + std::to_string(to), parts[static_cast<size_t>(to)]),
                                   tape.input("part " + std::to_string(from), parts[static_cast<size_t>(from)]), Var{}});
  }
  return executor.open(std::move(tape).finish());
}

}  // namespace

GradientSum::GradientSum(int64_t elements, Communicator& comm, Executor& executor)
    : elements_(elements),
      padded_(padded_to(elements, comm.size())),
      workers_(std::min(kGroups, static_cast<int64_t>(std::bit_floor(static_cast<unsigned>(comm.size()))))),
      groups_(comm.rank() < workers_ ? kGroups / workers_ : 0),
      first_(comm.rank() * groups_),
      comm_(&comm),
      executor_(&executor),
      arena_("gradients of groups", static_cast<size_t>(padded_) * sizeof(float) *
                                        static_cast<size_t>(std::max<int64_t>(1, groups_) + (comm.size() > 1 ? 1 : 0))) {
  whole_ = arena_.make("group 0", {{padded_}, DType::f32});  // a rank without groups sends zeros that nobody adds
  parts_.push_back(whole_.part(0, {elements_}));
  for (int64_t group = 1; group < groups_; ++group)
    parts_.push_back(arena_.make("group " + std::to_string(group), {{padded_}, DType::f32}).part(0, {elements_}));
  if (groups_ > 1) branch_ = record_sum(parts_, executor);
  if (comm.size() == 1) return;
  received_ = arena_.make("received", {{padded_}, DType::f32});
  const int64_t size = padded_ / comm.size();
  std::vector<Tensor> sent;
  for (int64_t rank = 0; rank < workers_; ++rank) sent.push_back(received_.part(rank * size, {size}));
  piece_ = sent.front();
  if (workers_ > 1) pieces_ = record_sum(sent, executor);
}

void GradientSum::reduce() {
  if (branch_) branch_->run();
  if (comm_->size() == 1) return;
  comm_->follow(executor_->queue());
  comm_->name_next("learned gradient");
  comm_->wait(comm_->start_exchange(executor_->resident(whole_), executor_->resident(received_)));
  if (pieces_) pieces_->run();
  comm_->name_next("learned gradient");
  comm_->wait(comm_->start_all_gather(executor_->resident(piece_), executor_->resident(whole_)));
}

}  // namespace fairway
