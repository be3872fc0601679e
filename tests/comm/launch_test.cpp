// The tree of additions, the launcher's variables and the watchdog.
#include "comm/launch.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "base/error.h"
#include "comm/tree.h"
#include "comm/watchdog.h"

namespace fairway {
namespace {

// The sum as text, so that its brackets show the order.
std::string bracketed(int64_t leaves) {
  std::vector<std::string> parts;
  for (int64_t i = 0; i < leaves; ++i) parts.push_back(std::to_string(i));
  for (const auto& [to, from] : tree_additions(leaves))
    parts[static_cast<size_t>(to)] = "(" + parts[static_cast<size_t>(to)] + parts[static_cast<size_t>(from)] + ")";
  return parts[0];
}

TEST(Tree, AddsNeighboursFirst) {
  EXPECT_EQ(bracketed(1), "0");
  EXPECT_EQ(bracketed(2), "(01)");
  EXPECT_EQ(bracketed(3), "((01)2)");
  EXPECT_EQ(bracketed(4), "((01)(23))");
  EXPECT_EQ(bracketed(6), "(((01)(23))(45))");
  EXPECT_EQ(bracketed(7), "(((01)(23))((45)6))");
  EXPECT_EQ(bracketed(8), "(((01)(23))((45)(67)))");
}

TEST(Tree, DepthIsTheLargestStack) {
  for (const auto& [leaves, depth] : std::map<int64_t, int>{{1, 1}, {2, 2}, {3, 2}, {4, 3}, {6, 3}, {7, 3}, {8, 4}, {64, 7}})
    EXPECT_EQ(tree_depth(leaves), depth) << leaves;
}

Launch launched(const std::map<std::string, std::string>& variables) {
  return find_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launch, ReadsTheLaunchersVariables) {
  EXPECT_EQ(launched({}).kind, Launch::Kind::alone);
  const Launch mpirun = launched({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  EXPECT_EQ(mpirun.kind, Launch::Kind::mpi);
  EXPECT_EQ(mpirun.size, 4);
  EXPECT_EQ(mpirun.rank, 3);
  EXPECT_EQ(launched({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}}).kind, Launch::Kind::mpi);
  EXPECT_EQ(launched({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}).kind, Launch::Kind::mpi);
  EXPECT_EQ(launched({{"WORLD_SIZE", "8"}, {"RANK", "7"}}).kind, Launch::Kind::torchrun);
  const Launch own =
      launched({{"FAIRWAY_RANK_COUNT", "4"}, {"FAIRWAY_RANK", "3"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(own.kind, Launch::Kind::own) << "a task of Slurm that has started ranks itself";
  EXPECT_EQ(own.local_rank, 3);
  EXPECT_EQ(own.local_size, 4);
}

TEST(Launch, TellsWhichDeviceIsTheRanks) {
  const Launch mpirun = launched({{"OMPI_COMM_WORLD_SIZE", "16"},
                                  {"OMPI_COMM_WORLD_RANK", "11"},
                                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                                  {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}});
  EXPECT_EQ(mpirun.local_rank, 3);
  EXPECT_EQ(mpirun.local_size, 8);
  const Launch torchrun = launched({{"WORLD_SIZE", "4"}, {"RANK", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_EQ(torchrun.local_rank, 0);
  EXPECT_EQ(torchrun.local_size, 2);
  const Launch untold = launched({{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}});
  EXPECT_EQ(untold.local_rank, 2);
  EXPECT_EQ(untold.local_size, 4);
}

TEST(Launch, OneProcessOrBrokenVariablesAreNoLauncher) {
  EXPECT_EQ(launched({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"WORLD_SIZE", "8"}, {"RANK", "1"}}).kind,
            Launch::Kind::alone);
  EXPECT_EQ(launched({{"SLURM_NTASKS", "8"}}).kind, Launch::Kind::alone);  // a batch script, not one of its steps
  for (const char* size : {"", "0", "-3", "4x", "99999999999999"})
    EXPECT_EQ(launched({{"WORLD_SIZE", size}, {"RANK", "0"}}).kind, Launch::Kind::alone) << size;
  EXPECT_EQ(launched({{"WORLD_SIZE", "4"}}).kind, Launch::Kind::alone);
  EXPECT_EQ(launched({{"WORLD_SIZE", "4"}, {"RANK", "4"}}).kind, Launch::Kind::alone);
}

TEST(Watchdog, NamesTheRankThatStandsStill) {
  std::vector<Watchdog::Beat> beats(3);
  std::mutex mutex;
  std::condition_variable found;
  int silent = -1;
  const auto tell = [&](size_t rank) {
    const std::lock_guard lock(mutex);
    if (silent < 0) silent = static_cast<int>(rank);
    found.notify_all();
  };
  const Watchdog first(beats, 0, 0.5, tell), second(beats, 1, 0.5, tell);  // rank 2 never beats
  std::unique_lock lock(mutex);
  found.wait(lock, [&] { return silent >= 0; });
  EXPECT_EQ(silent, 2);
}

TEST(Watchdog, RefusesALimitThatIsNone) {
  for (const char* text : {"", "soon", "0", "-1", "nan", "3 s"}) {
    setenv("FAIRWAY_WATCHDOG_SECONDS", text, 1);
    EXPECT_THROW(watchdog_limit(), InputError) << text;
  }
  setenv("FAIRWAY_WATCHDOG_SECONDS", "2.5", 1);
  EXPECT_EQ(watchdog_limit(), 2.5);
  unsetenv("FAIRWAY_WATCHDOG_SECONDS");
  EXPECT_EQ(watchdog_limit(), 20);
}

}  // namespace
}  // namespace fairway
