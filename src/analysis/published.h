// Scores of published systems seed by seed (scoring spec §9.3b), to compare runs against by name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fairway {

struct PublishedScores {
  std::string_view name, what;
  std::span<const int64_t> seeds;
  std::span<const double> nats, bpb;  // per token and per byte, in the order of the seeds; one of them may be empty
};

std::span<const PublishedScores> published_scores();
const PublishedScores* find_published(std::string_view name);  // null when there is none of that name

}  // namespace fairway
