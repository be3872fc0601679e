// Ranks over memory that they share: every call, with messages that need more than one round.
#include "comm/own_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "comm/rank_memory.h"

namespace fairway {
namespace {

constexpr int kRanks = 3;
constexpr int64_t kLarge = 5'000'003;  // floats: a piece is more than a window

Launch launch_of(int rank) { return {Launch::Kind::own, kRanks, rank, kRankCountVariable, rank, kRanks}; }

float value(int rank, int64_t i) { return static_cast<float>((i * 7 + rank * 13) % 100'003); }

std::vector<float> values_of(int rank, int64_t count) {
  std::vector<float> out(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = value(rank, i);
  return out;
}

Tensor view(std::vector<float>& values) {
  return make_view(values.data(), {{static_cast<int64_t>(values.size())}, DType::f32});
}

void exchange(Communicator& comm, int64_t piece) {
  std::vector<float> full = values_of(comm.rank(), piece * kRanks), received(full.size());
  comm.wait(comm.start_exchange(view(full), view(received)));
  size_t wrong = 0;
  for (int q = 0; q < kRanks; ++q)
    for (int64_t i = 0; i < piece; ++i)
      wrong += received[static_cast<size_t>(q * piece + i)] != value(q, comm.rank() * piece + i) ? 1 : 0;
  EXPECT_EQ(wrong, 0U) << piece;
}

void all_gather(Communicator& comm, int64_t count) {
  std::vector<float> shard = values_of(comm.rank(), count), full(static_cast<size_t>(count * kRanks));
  comm.wait(comm.start_all_gather(view(shard), view(full)));
  size_t wrong = 0;
  for (int q = 0; q < kRanks; ++q)
    for (int64_t i = 0; i < count; ++i) wrong += full[static_cast<size_t>(q * count + i)] != value(q, i) ? 1 : 0;
  EXPECT_EQ(wrong, 0U) << count;
}

// Two are under way at a time, and end in another order than they began.
void gather(Communicator& comm) {
  constexpr int64_t kPart = 5, kStride = 8;
  std::vector<float> part = values_of(comm.rank(), kPart), first(kStride * kRanks, -1), second = first;
  const auto a = comm.start_gather(view(part), view(first), kStride, 1);
  const auto b = comm.start_gather(view(part), view(second), kStride, 2);
  comm.wait(b);
  comm.wait(a);
  for (const auto& [to, all] : {std::pair{1, &first}, std::pair{2, &second}})
    for (int64_t i = 0; i < kStride * kRanks; ++i) {
      const bool there = comm.rank() == to && i % kStride < kPart;
      EXPECT_EQ((*all)[static_cast<size_t>(i)], there ? value(static_cast<int>(i / kStride), i % kStride) : -1)
          << to << " " << i;
    }
}

void every_call(Communicator& comm) {
  EXPECT_EQ(comm.local_size(), kRanks);
  for (const int64_t count : {int64_t{1}, int64_t{1000}, kLarge}) {
    exchange(comm, count);
    all_gather(comm, count);
    std::vector<float> told = comm.rank() == 2 ? values_of(2, count) : std::vector<float>(static_cast<size_t>(count));
    comm.broadcast(view(told), 2);
    EXPECT_TRUE(told == values_of(2, count)) << count;
  }
  gather(comm);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> sums{1.0 * round, comm.rank() == 1 ? 0.1 : 0};
    comm.all_reduce(sums);
    EXPECT_EQ(sums, (std::vector<double>{3.0 * round, 0.1}));
  }
}

TEST(OwnRanks, EveryCallBringsWhatWasSent) {
  const RankMemory memory = RankMemory::make(kRanks);
  setenv(kRankMemoryVariable, std::to_string(memory.file()).c_str(), 1);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.emplace_back([rank] { every_call(*start_own(launch_of(rank))); });
  for (std::thread& rank : ranks) rank.join();
  unsetenv(kRankMemoryVariable);
}

TEST(OwnRanks, TheFirstToFailIsTold) {
  const RankMemory memory = RankMemory::make(kRanks);
  EXPECT_FALSE(memory.words().any());
  setenv(kRankMemoryVariable, std::to_string(memory.file()).c_str(), 1);
  EXPECT_TRUE(told_to_parent(launch_of(1), "fairway: the disk is full", 1));
  EXPECT_TRUE(told_to_parent(launch_of(2), "fairway: rank 1 has gone", 2));
  EXPECT_EQ(memory.words().sentence, "fairway: the disk is full");
  EXPECT_EQ(memory.words().status, 1);
  unsetenv(kRankMemoryVariable);
}

TEST(OwnRanks, OtherFilesAreNoMemoryOfTheirs) {
  const RankMemory more = RankMemory::make(kRanks + 1);
  for (const std::string& given : {std::string(), std::string("nonsense"), std::string("2"), std::string("-1"),
                                   std::string("99"), std::to_string(more.file())}) {
    setenv(kRankMemoryVariable, given.c_str(), 1);
    EXPECT_THROW(start_own(launch_of(0)), InputError) << given;
    EXPECT_FALSE(told_to_parent(launch_of(0), "fairway: nobody reads this", 1)) << given;
  }
  unsetenv(kRankMemoryVariable);
}

}  // namespace
}  // namespace fairway
