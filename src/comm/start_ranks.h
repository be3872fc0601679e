// The program starts its own ranks, without a launcher (--gpus, --ranks): processes of the same words, one of which prints.
#pragma once

#include <string>
#include <vector>

namespace fairway {

inline constexpr int kMostOwnRanks = 64;

// Starts `ranks` processes of this program with these words (the first is its name) and waits for them. Rank 0 has the
// standard streams; the others have standard error only. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and a terminal's stop go on to all of
// them. When one fails the others are ended; they also end when this process does. Returns the exit status, which is that of
// the first that did not end with 0; RankFailure with the words of a rank that failed, or naming one that was killed.
int start_ranks(int ranks, const std::vector<std::string>& words);

}  // namespace fairway
