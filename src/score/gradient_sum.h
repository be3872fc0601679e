// The gradient of one step over all ranks, with bits that do not depend on their number: the step's sequences fall into eight
// groups of neighbours, each with a gradient of its own, and these are added in the order of comm/tree.h. A rank holds a whole
// branch of the tree; between ranks pieces are exchanged and added locally, as the trainer does it.
#pragma once

#include <memory>

#include "autograd/executor.h"
#include "comm/communicator.h"

namespace fairway {

class GradientSum {
 public:
  static constexpr int64_t kGroups = 8;
  GradientSum(int64_t elements, Communicator& comm, Executor& executor);

  // Groups [first_group(), first_group() + groups()) are this rank's. Of more than eight ranks, or of a number that is no power
  // of two, only so many work as hold equal branches; the others have no group.
  int64_t groups() const { return groups_; }
  int64_t first_group() const { return first_; }
  Tensor gradient(int64_t group) const { return parts_[static_cast<size_t>(group)]; }  // (elements), of this rank's group
  // Adds all groups of all ranks; total() is then the same everywhere. The groups' gradients are used up. Collective.
  void reduce();
  Tensor total() const { return parts_.front(); }

 private:
  int64_t elements_, padded_;  // padded: so that the ranks divide it
  int64_t workers_, groups_, first_;
  Communicator* comm_;
  Executor* executor_;
  Arena arena_;
  std::vector<Tensor> parts_;
  Tensor whole_, received_, piece_;           // (padded); what the ranks sent; this rank's piece of the sum
  std::unique_ptr<Session> branch_, pieces_;  // sums of this rank's groups, and of what the ranks sent
};

// Runs of neighbours, as even as can be: group g of n things holds [n·g/8, n·(g + 1)/8).
struct GroupRange {
  size_t begin, end;
  size_t count() const { return end - begin; }
};
constexpr GroupRange group_range(size_t things, int64_t group) {
  const auto at = static_cast<size_t>(group), groups = static_cast<size_t>(GradientSum::kGroups);
  return {things * at / groups, things * (at + 1) / groups};
}

}  // namespace fairway
