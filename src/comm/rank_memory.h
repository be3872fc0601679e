// Memory that ranks share when the program starts them itself (start_ranks.h): how far each has come, what travels between
// them, and why the first of them failed. It has no name; ranks inherit it as an open file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "comm/launch.h"
#include "comm/watchdog.h"

namespace fairway {

class RankMemory {
 public:
  static constexpr int kMostRanks = 64;
  static constexpr size_t kWindowBytes = size_t{16} << 20;

  // For `ranks` of them, in the process that will start them. Pages that nobody writes take no memory.
  static RankMemory make(int ranks);
  // In a rank. InputError when the launch names no such memory.
  static RankMemory find(const Launch& launch);
  RankMemory(RankMemory&& other) noexcept;
  RankMemory(const RankMemory&) = delete;
  ~RankMemory();

  int file() const { return file_; }
  std::atomic<uint64_t>& arrived(int rank);  // rounds that the rank has entered
  std::span<Watchdog::Beat> beats();
  // What a rank shows the others in a round. Two of them take turns, so that one is read while the next is written.
  std::byte* window(int rank, uint64_t round);

  // The first to fail leaves why; what later ones say is dropped.
  void leave_words(const std::string& sentence, int status);
  struct Words {
    std::string sentence;
    int status = 0;
    bool any() const { return status != 0; }
  };
  Words words() const;

 private:
  struct Head;
  RankMemory(int file, Head* head, size_t bytes) : file_(file), head_(head), bytes_(bytes) {}
  int file_;
  Head* head_;
  size_t bytes_;
};

}  // namespace fairway
