// Finding and opening the shards of a folder, and reading them as one stream.
#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "data/manifest.h"
#include "data/shard.h"
#include "data/validation.h"

namespace fairway::data {
namespace {

std::vector<std::filesystem::path> list(const std::filesystem::path& folder, std::string_view prefix,
                                        bool byte_counts = false) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (auto entry = std::filesystem::directory_iterator(folder, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".bin") && (byte_counts || name.find("_bytes_") == std::string::npos))
      files.push_back(entry->path());
  }
  if (error) throw InputError(fmt::format("{}: cannot list the data folder: {}", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

constexpr std::string_view kHeldOut = "fineweb_val_";

}  // namespace

std::vector<std::filesystem::path> list_train(const std::filesystem::path& folder) { return list(folder, "fineweb_train_"); }
std::vector<std::filesystem::path> list_validation(const std::filesystem::path& folder) { return list(folder, kHeldOut); }

ShardSet ShardSet::open_train(const std::filesystem::path& folder) {
  return open_listed(folder, list_train(folder), "fineweb_train_*.bin");
}

ShardSet ShardSet::open(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) {
    if (file.filename().string().starts_with(kHeldOut))
      throw InputError(fmt::format("{}: a validation shard, which only scoring may read", file.string()));
  }
  return open_any(files);
}

ShardSet ShardSet::open_listed(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& files,
                               std::string_view pattern) {
  require_finished(folder);
  if (files.empty()) throw InputError(fmt::format("{}: no shard named {} in this folder", folder.string(), pattern));
  ShardSet set = open_any(files);
  if (const auto manifest = read_manifest(folder)) check_counts(*manifest, folder, set);
  return set;
}

ShardSet ShardSet::open_any(const std::vector<std::filesystem::path>& files) {
  ShardSet set;
  set.shards_.reserve(files.size());
  for (const auto& file : files) {
    set.shards_.emplace_back(file);
    set.begins_.push_back(set.begins_.back() + set.shards_.back().tokens());
  }
  return set;
}

ShardSet Validation::open(const std::filesystem::path& folder) {
  return ShardSet::open_listed(folder, list_validation(folder), "fineweb_val_*.bin");
}

std::optional<ShardSet> Validation::open_byte_counts(const std::filesystem::path& folder) {
  const std::vector<std::filesystem::path> files = list(folder, "fineweb_val_bytes_", true);
  return files.empty() ? std::nullopt : std::optional(ShardSet::open_any(files));
}

HeldOutTokens Validation::read(const std::filesystem::path& folder) {
  HeldOutTokens out;
  out.tokens = open(folder).read_all(&out.shards);
  if (const auto counts = open_byte_counts(folder)) out.byte_counts = counts->read_all(&out.byte_count_files);
  if (const auto manifest = read_manifest(folder)) {
    for (const auto* files : {&out.shards, &out.byte_count_files}) check_bytes(*manifest, folder, *files);
  }
  return out;
}

Window ShardSet::locate(uint64_t index) const {
  FAIRWAY_ASSERT(index < total(), "a token past the last shard was asked for");
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), index);
  const auto shard = static_cast<size_t>(after - begins_.begin()) - 1;
  return {static_cast<uint32_t>(shard), index - begins_[shard]};
}

// FNV-1a over names and counts: a saved loader state is refused with other data.
uint64_t ShardSet::fingerprint() const {
  uint64_t hash = 0xCBF29CE484222325ULL;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3ULL; };
  for (const Shard& shard : shards_) {
    for (const char c : shard.path().filename().string()) mix(static_cast<unsigned char>(c));
    for (int byte = 0; byte < 8; ++byte) mix(static_cast<unsigned char>(shard.tokens() >> (8 * byte)));
  }
  return hash;
}

void ShardSet::read_wrapped(Window at, std::span<uint16_t> out) const {
  FAIRWAY_ASSERT(total() > 0, "a read from shards without tokens");
  while (!out.empty()) {
    const Shard& shard = shards_[at.shard];
    const size_t count = std::min<uint64_t>(out.size(), shard.tokens() - at.position);
    shard.read(at.position, out.first(count));
    out = out.subspan(count);
    at = {static_cast<uint32_t>((at.shard + 1) % shards_.size()), 0};
  }
}

std::vector<uint16_t> ShardSet::read_all(std::vector<FileIdentity>* read) const {
  std::vector<uint16_t> tokens(total());
  for (size_t i = 0; i < shards_.size(); ++i) {
    const std::span<uint16_t> own = std::span(tokens).subspan(begins_[i], shards_[i].tokens());
    shards_[i].read(0, own);
    if (read != nullptr) read->push_back(shards_[i].identity_of(own));
  }
  return tokens;
}

}  // namespace fairway::data
