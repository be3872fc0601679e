#include "data/document_hashes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/row_digest.h"

namespace fairway::data {
namespace {

constexpr size_t kHashSlab = 1 << 20;  // tokens or hashes read at a time
constexpr uint64_t kHashFileHeader = 16;

// The validation text's documents by hash, and which of them were met.
class Sought {
 public:
  explicit Sought(std::span<const uint16_t> tokens) {
    DocumentHasher hasher([&](const DocumentHasher::Document& document) { documents_.push_back(document); });
    hasher.feed(tokens);
    hasher.finish();
    std::sort(documents_.begin(), documents_.end(), [](const auto& a, const auto& b) { return a.hash < b.hash; });
    met_.resize(documents_.size());
  }

  void meet(uint64_t hash) {
    ++training_;
    const auto by_hash = [](const DocumentHasher::Document& document, uint64_t value) { return document.hash < value; };
    auto at = std::lower_bound(documents_.begin(), documents_.end(), hash, by_hash);
    for (; at != documents_.end() && at->hash == hash; ++at) met_[static_cast<size_t>(at - documents_.begin())] = true;
  }

  SharedDocuments result() const {
    SharedDocuments out{.training = training_, .validation = documents_.size()};
    for (size_t i = 0; i < met_.size(); ++i) {
      if (!met_[i]) continue;
      ++out.shared;
      if (out.example == 0 || documents_[i].number < out.example)
        out.example = documents_[i].number, out.example_token = documents_[i].first;
    }
    return out;
  }

 private:
  std::vector<DocumentHasher::Document> documents_;
  std::vector<bool> met_;
  uint64_t training_ = 0;
};

void meet_shards(const std::filesystem::path& folder, Sought& sought) {
  const ShardSet shards = ShardSet::open_train(folder);
  DocumentHasher hasher([&](const DocumentHasher::Document& document) { sought.meet(document.hash); });
  std::vector<uint16_t> slab(std::min<uint64_t>(kHashSlab, shards.total()));
  for (uint64_t at = 0; at < shards.total();) {
    const auto part = std::span(slab).first(std::min<uint64_t>(slab.size(), shards.total() - at));
    shards.read_wrapped(shards.locate(at), part);
    hasher.feed(part);
    at += part.size();
  }
  hasher.finish();
}

}  // namespace

void DocumentHasher::absorb() {
  state_ = row_digest::absorb(state_, word_);
  word_ = 0;
}

// Four tokens to a word; the length, absorbed last, tells a missing token from a token 0.
void DocumentHasher::feed(std::span<const uint16_t> tokens) {
  for (const uint16_t token : tokens) {
    if (token == kBosId) {
      finish();
      at_.first = place_;
      ++at_.number;
    } else {
      word_ = word_ << 16 | token;
      if (++length_ % 4 == 0) absorb();
    }
    ++place_;
  }
}

void DocumentHasher::finish() {
  if (length_ >= kLeastDocumentTokens) {
    absorb();
    at_.hash = row_digest::absorb(state_, length_);
    take_(at_);
  }
  state_ = word_ = length_ = 0;
}

HashFileIdentity read_hash_file(const std::filesystem::path& path, const std::function<void(uint64_t)>& take) {
  const InputFile file(path);
  uint64_t header[2] = {};
  const bool whole = file.read_some(header, kHashFileHeader) == kHashFileHeader;
  if (!whole || header[0] != kHashFileMagic)
    throw InputError(path.string() + ": not a file of documents' hashes; expected one that `fairway data tokenize` writes");
  const uint64_t count = header[1];
  if (file.size() % 8 != 0 || file.size() / 8 - kHashFileHeader / 8 != count)
    throw InputError(fmt::format("{}: {} bytes, but its header says {} hashes of 8 bytes", path.string(), file.size(), count));
  Sha256 sum;
  sum.update(header, kHashFileHeader);
  std::vector<uint64_t> slab(std::min<uint64_t>(kHashSlab, count));
  uint64_t before = 0;
  for (uint64_t at = 0; at < count;) {
    const size_t part = std::min<uint64_t>(slab.size(), count - at);
    if (file.read_at(slab.data(), 8 * part, kHashFileHeader + 8 * at) != 8 * part)
      throw InputError(fmt::format("{}: ended after hash {} of {} while it was read", path.string(), at, count));
    sum.update(slab.data(), 8 * part);
    for (size_t i = 0; i < part; before = slab[i++]) {
      if (slab[i] < before)
        throw InputError(
            fmt::format("{}: hash {} is less than the one before it; expected rising order", path.string(), at + i));
      take(slab[i]);
    }
    at += part;
  }
  return {count, sum.hex()};
}

std::optional<ManifestHashes> usable_hashes(const std::filesystem::path& folder) {
  const auto manifest = read_manifest(folder);
  if (!manifest || !manifest->hashes) return std::nullopt;
  for (const auto& file : list_train(folder)) {
    const std::string name = file.filename().string();
    if (std::none_of(manifest->shards.begin(), manifest->shards.end(), [&](const auto& listed) { return listed.name == name; }))
      return std::nullopt;
  }
  return manifest->hashes;
}

SharedDocuments find_shared(const std::filesystem::path& folder, std::span<const uint16_t> validation) {
  Sought sought(validation);
  if (const auto hashes = usable_hashes(folder)) {
    const std::filesystem::path path = folder / hashes->name;
    const HashFileIdentity read = read_hash_file(path, [&](uint64_t hash) { sought.meet(hash); });
    if (read.sha256 != hashes->sha256)
      throw InputError(fmt::format("{}: changed since manifest.json was written: its SHA-256 was {}… then, {}… now",
                                   path.string(), hashes->sha256.substr(0, 12), read.sha256.substr(0, 12)));
    return sought.result();
  }
  if (const auto manifest = read_manifest(folder); manifest && manifest->pieces > 0)
    return {.unknown = folder.string() + ": its documents were cut into pieces and it has no hashes of them; tokenize again"};
  meet_shards(folder, sought);
  return sought.result();
}

std::string sentence_of(const SharedDocuments& shared) {
  if (!shared.unknown.empty()) return "not known: " + shared.unknown;
  std::string text =
      fmt::format("{} of the validation text's {} documents are among the {} of the training text",
                  shared.shared == 0 ? "none" : fmt::format("{}", shared.shared), shared.validation, shared.training);
  if (shared.shared > 0)
    text += fmt::format("; the first is its document {}, which begins at token {}", shared.example, shared.example_token);
  return text;
}

}  // namespace fairway::data
