// Ranks without MPI meet at a port; what carries device tensors is parsed.
#include "comm/rendezvous.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"

namespace fairway {
namespace {

Meeting place(const std::map<std::string, std::string>& variables) {
  return meeting_place([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Rendezvous, TakesThePortAfterTorchruns) {
  const Meeting meeting = place({{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(meeting.host, "10.0.0.1");
  EXPECT_EQ(meeting.port, "29501");
  const Meeting own = place({{"FAIRWAY_RENDEZVOUS", "::1:4000"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(own.host, "::1");
  EXPECT_EQ(own.port, "4000");
}

TEST(Rendezvous, RefusesPlacesThatAreNone) {
  for (const char* text : {"host", ":7", "host:", "host:x", "host:0", "host:70000", "host:12 "})
    EXPECT_THROW(place({{"FAIRWAY_RENDEZVOUS", text}}), InputError) << text;
  EXPECT_THROW(place({}), InputError);
  EXPECT_THROW(place({{"MASTER_ADDR", "here"}}), InputError);
  EXPECT_THROW(place({{"MASTER_ADDR", "here"}, {"MASTER_PORT", "99999"}}), InputError);
}

TEST(Rendezvous, EveryRankGetsTheBytesOfTheFirst) {
  constexpr int kRanks = 4;
  setenv("FAIRWAY_RENDEZVOUS", "127.0.0.1:47311", 1);
  std::array<std::array<std::byte, 128>, kRanks> bytes{};
  for (size_t i = 0; i < bytes[0].size(); ++i) bytes[0][i] = static_cast<std::byte>(i * 7 + 1);
  std::vector<std::thread> ranks;
  for (int rank = kRanks - 1; rank >= 0; --rank)
    ranks.emplace_back([&, rank] {
      hand_out({Launch::Kind::torchrun, kRanks, rank, "WORLD_SIZE"}, bytes[static_cast<size_t>(rank)]);
    });
  for (std::thread& rank : ranks) rank.join();
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(bytes[static_cast<size_t>(rank)], bytes[0]) << rank;
  std::array<std::byte, 4> few{};
  EXPECT_THROW(hand_out({Launch::Kind::torchrun, 2, 0, "WORLD_SIZE"}, few, 0.05), InputError) << "nobody comes";
  EXPECT_THROW(hand_out({Launch::Kind::torchrun, 2, 1, "WORLD_SIZE"}, few, 0.05), InputError) << "nobody answers";
  unsetenv("FAIRWAY_RENDEZVOUS");
}

TEST(Carrier, HasThreeNames) {
  EXPECT_EQ(parse_carrier("auto"), Carrier::automatic);
  EXPECT_EQ(parse_carrier("mpi"), Carrier::mpi);
  EXPECT_EQ(parse_carrier("nccl"), Carrier::nccl);
  for (const char* name : {"", "NCCL", "gloo"}) EXPECT_THROW(parse_carrier(name), InputError) << name;
}

}  // namespace
}  // namespace fairway
