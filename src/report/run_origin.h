// How a run came about, as its folder remembers it: origin.json.
//   {"data": "/abs/shards", "relative": "../shards", "tokenizer": "/abs/other.model", "from": {"path", "sha256",
//   "train_seconds"}, "launches": [{"command", "in"}]}
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fairway {

inline constexpr const char* kOriginFile = "origin.json";

// Weights that a run began with instead of its seed's.
struct RunFork {
  std::string path, sha256;   // of the file with the weights
  double train_seconds = -1;  // of the runs before; below zero: not known
  bool operator==(const RunFork&) const = default;
};

struct RunOrigin {
  std::string data;       // absolute
  std::string relative;   // the same, seen from the run's folder
  std::string tokenizer;  // absolute, where it was named apart from the data; empty: tokenizer.model beside the shards
  std::optional<RunFork> from;
  nlohmann::ordered_json launches = nlohmann::ordered_json::array();
};

// Nothing when the folder has no origin.json; InputError when it is broken.
std::optional<RunOrigin> read_origin(const std::filesystem::path& folder);
std::string origin_text(const RunOrigin& origin);

// Seconds that this run and those it goes back to have trained, by their records; below zero where one of them does not tell.
double trained_seconds(const std::filesystem::path& folder);

}  // namespace fairway
