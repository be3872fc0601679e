// Fetches a set of files into a folder. Every file is checked against its size and SHA-256 before it takes its place; what is
// there already and right is left alone; what is interrupted goes on from its last byte, from any mirror.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "fetch/fetch_manifest.h"

namespace fairway::fetch {

struct FetchProgress {
  std::string file;
  size_t number = 0, files = 0;      // this file, from 1
  uint64_t bytes = 0, of_bytes = 0;  // of all files: there, and in all
  uint64_t fetched = 0;              // came over the network in this call
  double seconds = 0;                // since the first of those
};

struct FetchOptions {
  FileSet set;
  std::filesystem::path out;
  std::optional<int64_t> shards;  // only so many training shards, the first ones
  double stall_seconds = 30;
  std::function<void(const FetchProgress&)> progress = [](const FetchProgress&) {};
  std::function<void(const std::string&)> say = [](const std::string&) {};  // why a mirror or a file was given up
  std::function<bool()> stop = [] { return false; };
};

struct FetchResult {
  size_t files = 0, fetched_files = 0;
  uint64_t bytes = 0, fetched_bytes = 0;
  uint64_t resumed_bytes = 0;  // taken over from earlier tries
  double seconds = 0;
  bool stopped = false;
};

// The files that are wanted of a set, in its order. InputError when there are fewer shards.
std::vector<ListedFile> wanted_files(const FileSet& set, std::optional<int64_t> shards);

// One writer at a time in the folder. WorkError with every mirror's reason when a file cannot be had.
FetchResult fetch(const FetchOptions& options);

}  // namespace fairway::fetch
