#include "data/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/identity.h"
#include "base/sha256.h"
#include "data/compare_with_text.h"
#include "data/manifest.h"
#include "data/validation.h"
#include "tokenizer/case_tokens.h"

namespace fairway::data {
namespace {

constexpr size_t kSlab = 1 << 20;  // tokens read at a time
constexpr int kBarWidth = 40;

std::string bar(double share, bool unicode) {
  const int eighths = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * kBarWidth * 8));
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += unicode ? "█" : "#";
  constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (unicode) text += kParts[eighths % 8];
  if (eighths == 0 && share > 0) text += unicode ? "▏" : ".";
  return text;
}

// What a piece looks like in a table: U+2581 as it is, control characters never.
std::string shown(const Tokenizer* tokenizer, size_t id) {
  if (tokenizer == nullptr || id >= static_cast<size_t>(tokenizer->vocab())) return "";
  return tokenizer->piece(static_cast<int>(id)).text;
}

class Inspection {
 public:
  Inspection(const std::filesystem::path& folder, const InspectOptions& options) : folder_(folder), options_(options) {}

  InspectResult run() {
    require_finished(folder_);
    auto files = list_train(folder_);
    const auto validation = list_validation(folder_);
    files.insert(files.end(), validation.begin(), validation.end());
    if (files.empty())
      throw InputError(
          fmt::format("{}: no shard named fineweb_train_*.bin or fineweb_val_*.bin in this folder", folder_.string()));
    load_companions();
    for (const auto& file : files) open(file);
    for (const Shard& shard : shards_) sample(shard);
    check_manifest();
    check_tokens();
    if (!options_.validation.empty()) check_text();
    if (!list_train(folder_).empty() && !validation.empty()) check_shared();
    draw();
    return std::move(result_);
  }

 private:
  void problem(std::string sentence) { result_.problems.push_back(std::move(sentence)); }

  void load_companions() {
    try {
      manifest_ = read_manifest(folder_);
      if (manifest_) result_.shuffle = manifest_->shuffle, result_.pieces = manifest_->pieces;
    } catch (const InputError& error) {
      problem(error.what());
    }
    const auto model = folder_ / "tokenizer.model";
    if (!std::filesystem::exists(model)) return;
    try {
      tokenizer_.emplace(Tokenizer::load(model));
    } catch (const InputError& error) {
      problem(error.what());
    }
    if (!manifest_ || !tokenizer_) return;
    const Identities told = tokenizer_identity(manifest_->tokenizer_names(), "the manifest");
    if (!differences(tokenizer_identity(tokenizer_->names(), model.string()), told).empty())
      problem(fmt::format("{}: not the tokenizer that the manifest names", model.string()));
  }

  void open(const std::filesystem::path& file) {
    ++result_.shards;
    try {
      shards_.emplace_back(file);
      result_.tokens += shards_.back().tokens();
    } catch (const InputError& error) {
      problem(error.what());
    }
  }

  void check_manifest() {
    if (!manifest_) return;
    for (const ManifestShard& listed : manifest_->shards) {
      const auto path = folder_ / listed.name;
      if (!std::filesystem::exists(path)) {
        problem(fmt::format("{}: listed in the manifest but absent", path.string()));
      } else if (options_.checksums && sha256_of_file(path) != listed.sha256) {
        problem(fmt::format("{}: changed since the manifest was written: its SHA-256 differs", path.string()));
      }
    }
    for (const Shard& shard : shards_) {
      const std::string name = shard.path().filename().string();
      if (std::none_of(manifest_->shards.begin(), manifest_->shards.end(),
                       [&](const auto& listed) { return listed.name == name; }))
        problem(fmt::format("{}: not listed in the manifest", shard.path().string()));
    }
  }

  void sample(const Shard& shard) {
    const uint64_t share = options_.sample_tokens == 0 ? UINT64_MAX : options_.sample_tokens / shards_.size() + 1;
    const uint64_t count = std::min(shard.tokens(), share);
    std::vector<uint16_t> slab(std::min<uint64_t>(count, kSlab));
    result_.frequencies.resize(65536);
    uint64_t length = 0;
    bool inside = false;  // a document whose start was seen
    try {
      for (uint64_t at = 0; at < count;) {
        const auto part = std::span(slab).first(std::min<uint64_t>(slab.size(), count - at));
        shard.read(at, part);
        for (const uint16_t token : part) {
          ++result_.frequencies[token];
          if (token == kBosId) {
            if (inside) add_length(length);
            inside = true;
            length = 0;
          }
          ++length;
        }
        at += part.size();
      }
      result_.sampled_tokens += count;
    } catch (const InputError& error) {
      problem(error.what());
    }
  }

  void add_length(uint64_t length) {
    const auto power = static_cast<size_t>(std::bit_width(length) - 1);
    if (result_.document_lengths.size() <= power) result_.document_lengths.resize(power + 1);
    ++result_.document_lengths[power];
    ++result_.sampled_documents;
  }

  void check_tokens() {
    const int vocab = tokenizer_ ? tokenizer_->vocab() : manifest_ ? manifest_->vocab : 0;
    if (vocab <= 0) return;
    uint64_t outside = 0;
    for (size_t id = static_cast<size_t>(vocab); id < result_.frequencies.size(); ++id) outside += result_.frequencies[id];
    if (outside > 0)
      problem(
          fmt::format("{}: {} sampled tokens are outside the tokenizer's vocabulary of {}", folder_.string(), outside, vocab));
  }

  void check_text() {
    const std::string text = options_.validation.string();
    if (!tokenizer_) return problem(fmt::format("{}: no tokenizer.model to compare {} with", folder_.string(), text));
    const bool case_ops = declares_case_ops(*tokenizer_);
    const TextComparison compared = compare_with_text(folder_, *tokenizer_, case_ops, options_.validation);
    result_.compared_tokens = compared.tokens;
    result_.compared_byte_counts = compared.byte_counts;
    for (const std::string& sentence : compared.problems) problem(sentence);
    compared_ =
        fmt::format("compared with {}: {} documents, {} tokens, {} byte counts{}\n", text, compared.documents, compared.tokens,
                    compared.byte_counts, compared.byte_counts == 0 ? "" : fmt::format(" ({} bytes)", compared.bytes));
  }

  // Problems of the files themselves are told already.
  void check_shared() {
    try {
      if (!options_.checksums && !usable_hashes(folder_))
        result_.shared =
            SharedDocuments{.unknown = "the shards have no hashes of documents, and --no-checksums reads no shard"};
      else
        result_.shared = find_shared(folder_, Validation::open(folder_).read_all());
      if (result_.shared->shared > 0) problem(fmt::format("{}: {}", folder_.string(), sentence_of(*result_.shared)));
    } catch (const InputError& error) {
      if (result_.problems.empty()) problem(error.what());
    }
  }

  void draw() {
    std::string& text = result_.text;
    for (const Shard& shard : shards_)
      text += fmt::format("{:<34} {:>14} tokens\n", shard.path().filename().string(), shard.tokens());
    text += fmt::format("{:<34} {:>14} tokens in {} shards\n", "total", result_.tokens, result_.shards);
    if (result_.pieces > 0) text += fmt::format("training documents cut into pieces of at most {} tokens\n", result_.pieces);
    if (result_.shuffle) text += fmt::format("training documents shuffled with seed {}\n", *result_.shuffle);
    if (result_.shared) text += "shared documents: " + sentence_of(*result_.shared) + "\n";
    text += compared_;
    if (result_.sampled_tokens > 0) draw_frequencies(text);
    if (result_.sampled_documents > 0) draw_lengths(text);
    for (const std::string& sentence : result_.problems) text += "problem: " + sentence + "\n";
  }

  void draw_frequencies(std::string& text) const {
    std::vector<size_t> order(result_.frequencies.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return result_.frequencies[a] > result_.frequencies[b]; });
    const auto total = static_cast<double>(result_.sampled_tokens), top = static_cast<double>(result_.frequencies[order[0]]);
    text += fmt::format("\nmost frequent of {} sampled tokens\n", result_.sampled_tokens);
    for (size_t i = 0; i < 12 && result_.frequencies[order[i]] > 0; ++i) {
      const auto count = static_cast<double>(result_.frequencies[order[i]]);
      text += fmt::format("{:>6} {:<12} {:>6.2f} % {}\n", order[i], shown(tokenizer_ ? &*tokenizer_ : nullptr, order[i]),
                          100 * count / total, bar(count / top, options_.unicode));
    }
    text += "\nshare of the text by rank of token\n";
    for (size_t first = 0; first < order.size() && result_.frequencies[order[first]] > 0;) {
      const size_t last = std::min(first == 0 ? size_t{1} : 2 * first, order.size());
      double share = 0;
      for (size_t i = first; i < last; ++i) share += static_cast<double>(result_.frequencies[order[i]]) / total;
      text += fmt::format("{:>6} - {:<6} {:>9.2f} % {}\n", first + 1, last, 100 * share, bar(share, options_.unicode));
      first = last;
    }
  }

  void draw_lengths(std::string& text) const {
    const auto& counts = result_.document_lengths;
    const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    text += fmt::format("\nlengths of {} sampled documents, in tokens\n", result_.sampled_documents);
    for (size_t power = 0; power < counts.size(); ++power)
      text += fmt::format("{:>8} - {:<8} {:>8} {}\n", uint64_t{1} << power, (uint64_t{2} << power) - 1, counts[power],
                          bar(static_cast<double>(counts[power]) / most, options_.unicode));
  }

  std::filesystem::path folder_;
  InspectOptions options_;
  InspectResult result_;
  std::optional<Manifest> manifest_;
  std::optional<Tokenizer> tokenizer_;
  std::vector<Shard> shards_;
  std::string compared_;  // with a text, as a line
};

}  // namespace

InspectResult inspect(const std::filesystem::path& folder, const InspectOptions& options) {
  return Inspection(folder, options).run();
}

}  // namespace fairway::data
