#include "data/manifest.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace fairway::data {
namespace {

constexpr int kManifestVersion = 1;
constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;

std::filesystem::path manifest_path(const std::filesystem::path& folder) { return folder / "manifest.json"; }

void require_bare(const std::string& listed, const char* what, const std::string& name) {
  if (is_bare_name(listed)) return;
  throw InputError(fmt::format("{}: the {} \"{}\" is not the bare name of a file in its folder", name, what, listed));
}

}  // namespace

Manifest parse_manifest(const std::string& text, const std::string& name) {
  try {
    const auto json = parse_json(text, name);
    if (json.at("version").get<int>() != kManifestVersion)
      throw InputError(
          fmt::format("{}: manifest version {} is not known, expected {}", name, json.at("version").dump(), kManifestVersion));
    Manifest manifest;
    manifest.tokenizer_sha256 = json.at("tokenizer").at("sha256").get<std::string>();
    manifest.tokenizer_identity = json.at("tokenizer").value("identity", "");
    manifest.vocab = json.at("tokenizer").at("vocab").get<int>();
    manifest.documents = json.at("documents").get<uint64_t>();
    manifest.bytes = json.at("bytes").get<uint64_t>();
    manifest.val_documents = json.at("val_documents").get<uint64_t>();
    manifest.val_bytes = json.at("val_bytes").get<uint64_t>();
    manifest.case_ops = json.at("case_ops").get<bool>();
    if (json.contains("shuffle")) manifest.shuffle = json.at("shuffle").get<uint64_t>();
    manifest.pieces = json.value("pieces", uint64_t{0});
    if (json.contains("document_hashes")) {
      const auto& listed = json.at("document_hashes");
      manifest.hashes = {listed.at("name").get<std::string>(), listed.at("count").get<uint64_t>(),
                         listed.at("sha256").get<std::string>()};
      require_bare(manifest.hashes->name, "file of hashes", name);
    }
    for (const auto& shard : json.at("shards"))
      manifest.shards.push_back(
          {shard.at("name").get<std::string>(), shard.at("tokens").get<uint64_t>(), shard.at("sha256").get<std::string>()});
    for (const ManifestShard& shard : manifest.shards) require_bare(shard.name, "shard", name);
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    throw InputError(fmt::format("{}: not a manifest of shards: {}", name, error.what()));
  }
}

std::filesystem::path unfinished_mark(const std::filesystem::path& folder, std::string_view kind) {
  return folder / fmt::format(".tokenize_{}.tokens", kind);
}

void require_finished(const std::filesystem::path& folder) {
  for (const char* kind : {"train", "val"})
    if (std::filesystem::exists(unfinished_mark(folder, kind)))
      throw InputError(
          fmt::format("{}: its shards are unfinished: `fairway data tokenize` is writing them or was stopped; wait "
                      "for it or run it again",
                      folder.string()));
}

std::optional<Manifest> read_manifest(const std::filesystem::path& folder) {
  const auto path = manifest_path(folder);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return parse_manifest(read_file(path, kMaxManifestBytes), path.string());
}

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  nlohmann::ordered_json json;
  json["version"] = kManifestVersion;
  json["tokenizer"] = {{"file", "tokenizer.model"},
                       {"sha256", manifest.tokenizer_sha256},
                       {"identity", manifest.tokenizer_identity},
                       {"vocab", manifest.vocab}};
  json["documents"] = manifest.documents;
  json["bytes"] = manifest.bytes;
  json["val_documents"] = manifest.val_documents;
  json["val_bytes"] = manifest.val_bytes;
  json["case_ops"] = manifest.case_ops;
  if (manifest.shuffle) json["shuffle"] = *manifest.shuffle;
  if (manifest.pieces > 0) json["pieces"] = manifest.pieces;
  if (const auto& hashes = manifest.hashes)
    json["document_hashes"] = {{"name", hashes->name}, {"count", hashes->count}, {"sha256", hashes->sha256}};
  json["shards"] = nlohmann::ordered_json::array();
  for (const ManifestShard& shard : manifest.shards)
    json["shards"].push_back({{"name", shard.name}, {"tokens", shard.tokens}, {"sha256", shard.sha256}});
  write_file_atomic(manifest_path(folder), json.dump(2) + "\n");
}

void check_counts(const Manifest& manifest, const std::filesystem::path& folder, const ShardSet& set) {
  for (size_t i = 0; i < set.size(); ++i)
    for (const ManifestShard& listed : manifest.shards)
      if (listed.name == set[i].path().filename().string() && listed.tokens != set[i].tokens())
        throw InputError(fmt::format("{}: changed since {} was written: {} tokens then, {} now", set[i].path().string(),
                                     manifest_path(folder).string(), listed.tokens, set[i].tokens()));
}

void check_bytes(const Manifest& manifest, const std::filesystem::path& folder, const std::vector<FileIdentity>& read) {
  for (const FileIdentity& file : read)
    for (const ManifestShard& listed : manifest.shards)
      if (listed.name == file.path.filename().string() && listed.sha256 != file.sha256)
        throw InputError(fmt::format("{}: changed since {} was written: its SHA-256 was {}… then, {}… now", file.path.string(),
                                     manifest_path(folder).string(), listed.sha256.substr(0, 12), file.sha256.substr(0, 12)));
}

}  // namespace fairway::data
