// Ranks as threads: one that fails ends the others, whatever they wait for.
#include "comm/thread_ranks.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace fairway {
namespace {

TEST(ThreadRanks, OneThatFailsEndsTheOthers) {
  ThreadRanks ranks(3);
  try {
    ranks.run([](Communicator& comm) {
      std::vector<double> values{1.0};
      comm.all_reduce(values);
      EXPECT_EQ(values.front(), 3);
      if (comm.rank() == 1) throw InputError("rank 1 found a broken file");
      comm.barrier();
      FAIL() << "rank 1 never came";
    });
    FAIL() << "nobody was told";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "rank 1 found a broken file");
  }
}

}  // namespace
}  // namespace fairway
