// Hessians over batches that several ranks share. Batches fall into eight groups of neighbours, and the groups' sums are added
// in the order of comm/tree.h: a rank holds whole branches, so the sum has the same bits for any number of ranks.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "quant/hessians.h"

namespace fairway {

class SharedHessians {
 public:
  SharedHessians(OpSite site, Communicator& comm, int64_t batches);

  bool mine(int64_t batch) const;
  bool ends_group(int64_t batch) const;    // no later batch is added to its store
  HessianStore& store_for(int64_t batch);  // of the rank's own batches, in order
  // On every rank, finished. Collective.
  HessianStore finish(std::vector<std::string>& problems);

  // Of `count` things the share of this rank, as neighbours; ranks beyond the eighth have none.
  struct Part {
    int64_t begin = 0, end = 0;
  };
  static constexpr int64_t kGroups = 8;  // of batches, which are added up in one order whoever has them
  static Part part_of(const Communicator& comm, int64_t count);

 private:
  static int workers(const Communicator& comm);
  int64_t group_of(int64_t batch) const;
  void close_group();
  HessianStore exchange(HessianStore mine);

  OpSite site_;
  Communicator* comm_;
  int64_t batches_, first_, groups_;  // this rank's groups
  int64_t closed_ = 0;                // of them
  std::vector<HessianStore> stack_;   // branches that are complete
  std::unique_ptr<HessianStore> open_;
};

}  // namespace fairway
