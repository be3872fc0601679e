// Text to shards (spec §1.1, scoring spec §1.1): BOS before each document, no EOS, documents running on across shards.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/identity.h"
#include "base/writer_lock.h"
#include "data/document_encoder.h"
#include "data/document_hash_writer.h"
#include "data/document_shuffle.h"
#include "data/documents.h"
#include "data/manifest.h"
#include "data/ordered_pipeline.h"
#include "data/token_stream.h"
#include "data/tools.h"
#include "tokenizer/case_tokens.h"
#include "tokenizer/tokenizer.h"

namespace fairway::data {
namespace {

constexpr size_t kJobBytes = 1 << 18, kJobRecords = 512;
constexpr int kBytesRule =
    2;  // counted up when byte counts are made by another rule, so that no work of the old one is taken up

struct Job {
  std::shared_ptr<const DocumentReader> reader;  // decodes the records
  std::vector<Record> records;                   // the first `used` count
  size_t used = 0;
  uint64_t file = 0, records_after = 0;  // place in the inputs behind this job
  bool file_ended = false;
  std::vector<int> ids;
  std::vector<uint16_t> tokens, bytes;
  std::vector<uint64_t> hashes;  // of its documents
  uint64_t counted_bytes = 0, text_bytes = 0, changed_documents = 0, changed_bytes = 0, left_out = 0;
};

// Reads the records of several files in order, skipping what an earlier run did.
class RecordFeed {
 public:
  RecordFeed(const std::vector<std::filesystem::path>& inputs, const StreamState& from)
      : inputs_(inputs), file_(from.file), skip_(from.records) {}

  bool operator()(Job& job) {
    job.used = 0;
    job.file_ended = false;
    if (file_ >= inputs_.size()) return false;
    if (!reader_) open();
    size_t bytes = 0;
    while (bytes < kJobBytes && job.used < kJobRecords) {
      if (job.used == job.records.size()) job.records.emplace_back();
      if (!reader_->next(job.records[job.used])) {
        job.file_ended = true;
        break;
      }
      bytes += job.records[job.used++].text.size();
    }
    records_ += job.used;
    job.reader = reader_;
    job.file = file_;
    job.records_after = records_;
    if (job.file_ended) {
      ++file_;
      reader_.reset();
    }
    return true;
  }

 private:
  void open() {
    reader_ = std::make_shared<DocumentReader>(inputs_[file_]);
    records_ = std::exchange(skip_, 0);
    Record skipped;
    for (uint64_t i = 0; i < records_; ++i)
      if (!reader_->next(skipped))
        throw InputError(fmt::format("{}: it has become shorter since it was first read", inputs_[file_].string()));
  }

  const std::vector<std::filesystem::path>& inputs_;
  uint64_t file_, skip_, records_ = 0;
  std::shared_ptr<DocumentReader> reader_;
};

class Encoder {
 public:
  // Documents of more than `longest` tokens are cut into pieces; 0: none are. Documents whose hash is among the sorted
  // `unwanted` are left out.
  Encoder(const DocumentEncoder& encoder, uint64_t longest, std::vector<uint64_t> unwanted)
      : encoder_(encoder), longest_(longest), unwanted_(std::move(unwanted)) {}

  void operator()(Job& job) const {
    job.tokens.clear();
    job.bytes.clear();
    job.hashes.clear();
    job.counted_bytes = job.text_bytes = job.changed_documents = job.changed_bytes = job.left_out = 0;
    for (size_t i = 0; i < job.used; ++i) {
      Record& record = job.records[i];
      const size_t first = job.bytes.size();
      job.reader->decode(record);
      uint64_t changed = 0;
      try {
        changed = encoder_.encode(record.text, job.ids, job.bytes);
      } catch (const InputError& error) {
        throw InputError(job.reader->place(record) + ": " + error.what());
      }
      const size_t begin = job.tokens.size();
      job.tokens.insert(job.tokens.end(), job.ids.begin(), job.ids.end());
      if (!hash(job, begin)) {
        job.tokens.resize(begin);
        job.bytes.resize(first);
        ++job.left_out;
        continue;
      }
      job.text_bytes += record.text.size();
      job.changed_documents += changed > 0 ? 1 : 0;
      job.changed_bytes += changed;
      if (longest_ == 0 || job.ids.size() <= longest_) continue;
      cut(job, first);
      job.tokens.resize(begin);
      job.tokens.insert(job.tokens.end(), job.ids.begin(), job.ids.end());
    }
    for (const uint16_t bytes : job.bytes) job.counted_bytes += bytes;
  }

 private:
  // Of the whole document, whose tokens are the last. False: it is unwanted, and its hash is not kept.
  bool hash(Job& job, size_t begin) const {
    bool wanted = true;
    DocumentHasher hasher([&](const DocumentHasher::Document& document) {
      wanted = !std::binary_search(unwanted_.begin(), unwanted_.end(), document.hash);
      if (wanted) job.hashes.push_back(document.hash);
    });
    hasher.feed(std::span(job.tokens).subspan(begin));
    hasher.finish();
    return wanted;
  }

  // Into the fewest pieces, whose lengths differ by one at most; each begins with BOS, which has no bytes. The document's own
  // bytes begin at `first`.
  void cut(Job& job, size_t first) const {
    const std::vector<int> ids(job.ids.begin() + 1, job.ids.end());
    const std::vector<uint16_t> bytes(job.bytes.begin() + static_cast<std::ptrdiff_t>(first) + 1, job.bytes.end());
    const size_t pieces = (ids.size() + longest_ - 2) / (longest_ - 1);
    job.ids.clear();
    job.bytes.resize(first);
    for (size_t piece = 0; piece < pieces; ++piece) {
      const auto begin = static_cast<std::ptrdiff_t>(ids.size() * piece / pieces),
                 end = static_cast<std::ptrdiff_t>(ids.size() * (piece + 1) / pieces);
      job.ids.push_back(kBosId);
      job.bytes.push_back(0);
      job.ids.insert(job.ids.end(), ids.begin() + begin, ids.begin() + end);
      job.bytes.insert(job.bytes.end(), bytes.begin() + begin, bytes.begin() + end);
    }
  }

  const DocumentEncoder& encoder_;
  uint64_t longest_;
  std::vector<uint64_t> unwanted_;
};

// Everything the tokens depend on: another key means that journalled work is of no use.
std::string stream_key(const std::vector<std::filesystem::path>& inputs, const Tokenizer& tokenizer,
                       const TokenizeOptions& options, uint64_t longest) {
  std::string text =
      fmt::format("{} case_ops={} bytes={} longest={}", tokenizer.sha256(), options.case_ops, kBytesRule, longest);
  for (const auto& input : inputs) {
    const InputFile file(input);
    const auto changed = std::filesystem::last_write_time(input).time_since_epoch().count();
    text += fmt::format("\n{} {} {}", std::filesystem::absolute(input).string(), file.size(), changed);
  }
  return sha256_hex(text);
}

void encode_stream(const std::vector<std::filesystem::path>& inputs, const Encoder& encoder, const TokenizeOptions& options,
                   TokenStream& stream) {
  RecordFeed feed(inputs, stream.state());
  StreamState state = stream.state();
  double last = seconds_now();
  const auto write = [&](Job& job) {
    stream.append(job.tokens, job.bytes, job.hashes);
    state.file = job.file + (job.file_ended ? 1 : 0);
    state.records = job.file_ended ? 0 : job.records_after;
    state.documents += job.used - job.left_out;
    state.left_out += job.left_out;
    state.tokens += job.tokens.size();
    state.bytes += job.counted_bytes;
    state.text_bytes += job.text_bytes;
    state.changed_documents += job.changed_documents;
    state.changed_bytes += job.changed_bytes;
    state.hashes += job.hashes.size();
    stream.advance(state);
    const double now = seconds_now();
    if (now - last >= options.checkpoint_seconds) {
      stream.checkpoint();
      last = now;
    }
    if (options.progress) options.progress({state.documents, state.tokens});
  };
  try {
    OrderedPipeline<Job>(options.threads).run(std::ref(feed), std::cref(encoder), write);
  } catch (...) {
    stream.checkpoint();
    throw;
  }
  stream.checkpoint();
}

std::vector<uint64_t> shard_sizes(uint64_t tokens, int shards, uint64_t shard_tokens) {
  std::vector<uint64_t> sizes;
  if (shards > 0) {
    const auto count = static_cast<uint64_t>(shards);
    for (uint64_t i = 0; i < count; ++i) sizes.push_back(tokens / count + (i < tokens % count ? 1 : 0));
  } else {
    for (uint64_t left = tokens; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, shard_tokens));
  }
  return sizes;
}

using ReadWords = std::function<void(uint64_t position, std::span<uint16_t> out)>;  // called in order, without gaps

struct ShardSources {
  ReadWords tokens, bytes;  // no bytes: no shards of them
};

ManifestShard cut_shard(const std::filesystem::path& file, uint64_t begin, uint64_t tokens, const ReadWords& read) {
  ShardWriter writer(file, tokens);
  std::vector<uint16_t> buffer(std::min<uint64_t>(tokens, 1 << 20));
  for (uint64_t done = 0; done < tokens;) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(buffer.size(), tokens - done));
    read(begin + done, part);
    writer.append(part);
    done += part.size();
  }
  return {file.filename().string(), tokens, writer.finish()};
}

void cut_shards(const ShardSources& sources, const std::filesystem::path& folder, std::string_view kind,
                const std::vector<uint64_t>& sizes, std::vector<ManifestShard>& listed) {
  uint64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    listed.push_back(cut_shard(folder / fmt::format("fineweb_{}_{:06}.bin", kind, i), begin, sizes[i], sources.tokens));
    if (sources.bytes)
      listed.push_back(cut_shard(folder / fmt::format("fineweb_{}_bytes_{:06}.bin", kind, i), begin, sizes[i], sources.bytes));
    begin += sizes[i];
  }
}

bool is_kind(const std::string& name, std::string_view kind) { return name.starts_with(fmt::format("fineweb_{}_", kind)); }

// Shards of an earlier run may be replaced; shards nobody listed belong to someone else and would mix with ours. Not asked when
// work is resumed: the run that began it has asked, and may have written shards before its manifest.
void check_strangers(const std::filesystem::path& folder, std::string_view kind, const std::optional<Manifest>& earlier,
                     TokenStream& stream) {
  for (const auto& path : kind == "train" ? list_train(folder) : list_validation(folder)) {
    const std::string name = path.filename().string();
    if (earlier && std::any_of(earlier->shards.begin(), earlier->shards.end(), [&](const auto& s) { return s.name == name; }))
      continue;
    stream.remove();
    throw InputError(
        fmt::format("{}: already exists and is not listed in a manifest; choose another folder or remove it", path.string()));
  }
}

void check(const TokenizeOptions& options) {
  if (options.inputs.empty() && !options.validation) throw InputError("no text was given to tokenize");
  if (options.shuffle && options.inputs.empty())
    throw InputError("--shuffle orders training documents, but no training text was given");
  if (options.pieces == 1) throw InputError("--pieces 1: a piece begins with BOS, so it has at least 2 tokens");
  if (options.pieces > 0 && options.inputs.empty())
    throw InputError("--pieces cuts training documents, but no training text was given");
  if (options.apart && (options.inputs.empty() || !options.validation))
    throw InputError("--apart keeps training and validation text apart; give both, the second with --val");
  if (options.shards < 0 || options.shards > 999999)
    throw InputError(fmt::format("{} shards were asked for; expected 1 to 999999", options.shards));
  if (options.shard_tokens < 1 || options.shard_tokens > kMaxShardTokens)
    throw InputError(
        fmt::format("shards of {} tokens were asked for; expected 1 to {}", options.shard_tokens, kMaxShardTokens));
}

// One kind of shards, from its inputs to its files; the entries of the earlier run of this kind are replaced in `manifest`.
void tokenize_kind(std::string_view kind, const std::vector<std::filesystem::path>& inputs, const Encoder& encoder,
                   const TokenizeOptions& options, TokenStream& stream, Manifest& manifest) {
  encode_stream(inputs, encoder, options, stream);
  const StreamState& state = stream.state();
  const bool train = kind == "train";
  if (state.left_out > 0 && state.tokens == 0)
    throw InputError(fmt::format("{}: the validation text has all of its documents too, so none is left to train on",
                                 inputs.front().string()));
  if (state.tokens == 0) throw InputError(fmt::format("{}: no documents were found", inputs.front().string()));
  if (train && state.tokens < static_cast<uint64_t>(options.shards))
    throw InputError(fmt::format("{} tokens cannot fill {} shards", state.tokens, options.shards));
  const auto sizes = shard_sizes(state.tokens, train ? options.shards : 0, options.shard_tokens);
  if (*std::max_element(sizes.begin(), sizes.end()) > kMaxShardTokens)
    throw InputError(fmt::format("{} tokens in {} shards are more than {} each: ask for more shards", state.tokens,
                                 sizes.size(), kMaxShardTokens));
  std::vector<std::string> stale;
  std::erase_if(manifest.shards, [&](const ManifestShard& shard) {
    if (!is_kind(shard.name, kind)) return false;
    stale.push_back(shard.name);
    return true;
  });
  ShardSources sources{.tokens = [&](uint64_t at, std::span<uint16_t> out) { stream.read(at, out); }};
  if (!train && (options.byte_counts || options.case_ops))
    sources.bytes = [&](uint64_t at, std::span<uint16_t> out) { stream.read_bytes(at, out); };
  std::optional<DocumentShuffle> shuffle;
  if (train && options.shuffle) {
    shuffle.emplace(stream, options.out, *options.shuffle, options.shuffle_words);
    sources.tokens = [&](uint64_t, std::span<uint16_t> out) { shuffle->next(out); };
  }
  for (const std::string& name : stale) remove_file(options.out / name);
  cut_shards(sources, options.out, kind, sizes, manifest.shards);
  if (train) {
    manifest.shuffle = options.shuffle, manifest.pieces = options.pieces;
    manifest.hashes = write_hash_file(stream, options.out, options.hash_run);
  }
  (train ? manifest.documents : manifest.val_documents) = state.documents;
  (train ? manifest.bytes : manifest.val_bytes) = state.bytes;
}

std::vector<uint64_t> sorted_hashes(const TokenStream& stream) {
  std::vector<uint64_t> hashes;
  DocumentHasher hasher([&](const DocumentHasher::Document& document) { hashes.push_back(document.hash); });
  std::vector<uint16_t> slab(std::min<uint64_t>(stream.state().tokens, 1 << 20));
  for (uint64_t at = 0; at < stream.state().tokens;) {
    const auto part = std::span(slab).first(std::min<uint64_t>(slab.size(), stream.state().tokens - at));
    stream.read(at, part);
    hasher.feed(part);
    at += part.size();
  }
  hasher.finish();
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

// Both kinds go before the first is made again: a run stopped between them must not leave shards of two tokenizers.
void remove_shards(const std::filesystem::path& folder, Manifest& manifest) {
  for (const ManifestShard& shard : manifest.shards) remove_file(folder / shard.name);
  manifest.shards.clear();
  if (manifest.hashes) remove_file(folder / manifest.hashes->name);
  manifest.hashes.reset();
}

}  // namespace

TokenizeResult tokenize(const TokenizeOptions& asked) {
  const Stopwatch watch;
  check(asked);
  const Tokenizer tokenizer = Tokenizer::load(asked.tokenizer);
  TokenizeOptions options = asked;
  options.case_ops = asked.case_ops || declares_case_ops(tokenizer);  // else `generate` would read other text than training did
  options.byte_counts = asked.byte_counts || tokenizer.lossless();    // the tables leave out a document's leading space
  const DocumentEncoder train_encoder(tokenizer, options.case_ops, DocumentEncoder::Bytes::normalised),
      val_encoder(tokenizer, options.case_ops, held_out_bytes(options.case_ops));
  std::vector<std::filesystem::path> validation;
  if (options.validation) validation.push_back(*options.validation);
  const std::string val_key = stream_key(validation, tokenizer, options, 0);
  std::string train_key = stream_key(options.inputs, tokenizer, options, options.pieces);
  if (options.apart) train_key = sha256_hex(train_key + val_key);

  if (const std::error_code error = disk::make_folders(options.out))
    throw WorkError(fmt::format("{}: cannot create this folder: {}", options.out.string(), error.message()));
  const WriterLock lock = WriterLock::of_folder(options.out);
  const auto earlier = read_manifest(options.out);
  Manifest manifest = earlier.value_or(Manifest{});
  const bool both = !options.inputs.empty() && options.validation.has_value();
  const auto one_tokenizer = [&] {
    return differences(tokenizer_identity(tokenizer.names(), ""), tokenizer_identity(earlier->tokenizer_names(), "")).empty();
  };
  const bool same = !earlier || (one_tokenizer() && earlier->case_ops == options.case_ops);
  if (!same && !both)
    throw InputError(fmt::format("{}: the shards there were made with a different tokenizer", options.out.string()));
  if (!same) remove_shards(options.out, manifest);
  manifest.tokenizer_sha256 = tokenizer.sha256();
  manifest.tokenizer_identity = tokenizer.identity();
  manifest.vocab = tokenizer.vocab();
  manifest.case_ops = options.case_ops;

  TokenizeResult result;
  std::vector<uint64_t> held_out;  // the validation text's documents, where they are kept apart
  const auto run = [&](std::string_view kind, const std::vector<std::filesystem::path>& inputs, const std::string& key,
                       const Encoder& encoder) {
    if (inputs.empty()) return;
    TokenStream stream(options.out, std::string(kind), key,
                       kind == "val" ? TokenStream::Beside::byte_counts : TokenStream::Beside::hashes);
    if (stream.resumed_documents() == 0) check_strangers(options.out, kind, earlier, stream);
    result.resumed_documents += stream.resumed_documents();
    tokenize_kind(kind, inputs, encoder, options, stream, manifest);
    const StreamState& state = stream.state();
    result.documents += state.documents;
    result.tokens += state.tokens;
    result.bytes += state.bytes;
    result.text_bytes += state.text_bytes;
    result.changed_documents += state.changed_documents;
    result.changed_bytes += state.changed_bytes;
    result.left_out += state.left_out;
    if (options.apart && kind == "val") held_out = sorted_hashes(stream);
    write_manifest(options.out, manifest);
    stream.remove();
  };
  write_file_atomic(options.out / "tokenizer.model", tokenizer.bytes());
  const auto run_validation = [&] { run("val", validation, val_key, Encoder(val_encoder, 0, {})); };
  if (options.apart) run_validation();  // what it has decides about the training text's documents
  run("train", options.inputs, train_key, Encoder(train_encoder, options.pieces, std::move(held_out)));
  if (!options.apart) run_validation();
  result.shards = static_cast<int>((options.inputs.empty() ? 0 : list_train(options.out).size()) +
                                   (validation.empty() ? 0 : list_validation(options.out).size()));
  result.seconds = watch.seconds();
  return result;
}

}  // namespace fairway::data
