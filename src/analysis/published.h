// Scores of published systems seed by seed (scoring spec §9.3b), to compare runs against by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fairway {

// A tokenizer of the challenge: the targets that it makes of the official validation text (scoring spec §1.6).
struct OfficialTokens {
  std::string_view name;
  int64_t targets = 0, other_targets = 0;  // the second of another export or of the untruncated stream; 0: there is none
};
// The text's bytes, by which a score of all of it is known whatever the tokenizer: they all give about as many. The tolerance
// is for tails, which whole windows leave out.
inline constexpr int64_t kOfficialBytes = 151'078'222, kOfficialTail = 16'000;

struct PublishedScores {
  std::string_view name, what;
  const OfficialTokens* tokens;
  std::span<const int64_t> seeds;
  std::span<const double> nats, bpb;  // per token and per byte, in the order of the seeds; one of them may be empty
};

std::span<const PublishedScores> published_scores();
const PublishedScores* find_published(std::string_view name);  // null when there is none of that name

}  // namespace fairway
