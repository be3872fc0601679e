#include "analysis/score_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "score/documents.h"

namespace fairway {
namespace {

constexpr uint32_t kRecordsVersion = 2, kWithoutDocuments = 1;

struct RecordsHeader {
  char magic[4] = {'F', 'W', 'S', 'R'};
  uint32_t version = kRecordsVersion;
  uint64_t targets = 0;
};
static_assert(sizeof(RecordsHeader) == 16 && sizeof(DocumentSize) == 16);

[[noreturn]] void refuse_records(const std::filesystem::path& path, const std::string& what) {
  throw InputError(path.string() + ": " + what + "; expected the records that `fairway score --out` writes");
}

uint64_t end_of_nats(const RecordsHeader& header) { return sizeof header + sizeof(float) * header.targets; }

RecordsHeader read_records_header(const InputFile& file) {
  RecordsHeader header;
  const RecordsHeader known;
  const uint64_t size = file.size();
  if (file.read_at(&header, sizeof header, 0) != sizeof header || std::memcmp(header.magic, known.magic, 4) != 0)
    refuse_records(file.path(), "does not begin like score records");
  if (header.version != kRecordsVersion && header.version != kWithoutDocuments)
    refuse_records(file.path(), fmt::format("version {} is not known", header.version));
  const bool fits = header.targets <= size && end_of_nats(header) <= size;
  if (!fits || (header.version == kWithoutDocuments && end_of_nats(header) != size))
    refuse_records(file.path(), fmt::format("{} bytes do not hold its {} targets", size, header.targets));
  return header;
}

// The file's bytes in order, each hashed as it is used.
class RecordsReader {
 public:
  explicit RecordsReader(const std::filesystem::path& path) : file_(path), header_(read_records_header(file_)) {
    hash_.update(&header_, sizeof header_);
  }

  const RecordsHeader& header() const { return header_; }
  uint64_t left() const { return file_.size() - at_; }
  void read(void* out, size_t bytes) {
    if (file_.read_at(out, bytes, at_) != bytes) refuse_records(file_.path(), "became shorter while it was read");
    hash_.update(out, bytes);
    at_ += bytes;
  }
  FileIdentity identity() { return {file_.path(), at_, hash_.hex()}; }

 private:
  InputFile file_;
  RecordsHeader header_;
  Sha256 hash_;
  uint64_t at_ = sizeof(RecordsHeader);
};

std::vector<DocumentSize> read_documents(RecordsReader& in, const std::filesystem::path& path) {
  uint64_t count = 0;
  if (in.left() < sizeof count) refuse_records(path, "ends before its documents");
  in.read(&count, sizeof count);
  if (in.left() % sizeof(DocumentSize) != 0 || in.left() / sizeof(DocumentSize) != count)
    refuse_records(path, fmt::format("{} bytes do not hold its {} documents", in.left(), count));
  std::vector<DocumentSize> documents(count);
  in.read(documents.data(), count * sizeof(DocumentSize));
  const auto all = static_cast<int64_t>(in.header().targets);
  int64_t targets = 0;
  for (const DocumentSize& document : documents) {
    if (document.targets < 1 || document.targets > all - targets || document.bytes < 0 || document.bytes > INT64_MAX / all)
      refuse_records(path, fmt::format("a document of {} targets and {} bytes", document.targets, document.bytes));
    targets += document.targets;
  }
  if (targets != all) refuse_records(path, fmt::format("its documents have {} targets of {}", targets, all));
  return documents;
}

}  // namespace

std::vector<DocumentSize> document_sizes(std::span<const uint16_t> stream, const TargetBytes& bytes, int64_t bos) {
  std::vector<DocumentSize> out;
  for (const DocumentRange& range : document_ranges(stream, bos)) {
    out.push_back({.targets = range.count()});
    for (int64_t target = range.first; target < range.end; ++target) out.back().bytes += bytes.of(stream, target);
  }
  return out;
}

FileIdentity write_score_records(const std::filesystem::path& path, const ScoreLedger& ledger,
                                 std::span<const DocumentSize> documents) {
  RecordsHeader header;
  header.targets = static_cast<uint64_t>(ledger.targets());
  AtomicFile file(path);
  Sha256 hash;
  const auto put = [&](const void* data, size_t bytes) {
    file.write(data, bytes);
    hash.update(data, bytes);
  };
  put(&header, sizeof header);
  std::vector<float> block;
  for (int64_t first = 1; first <= ledger.targets(); first += kScoreBlock) {
    block.clear();
    for (int64_t target = first; target < std::min(first + kScoreBlock, ledger.targets() + 1); ++target)
      block.push_back(ledger.nll(target));
    put(block.data(), block.size() * sizeof(float));
  }
  const uint64_t count = documents.size();
  put(&count, sizeof count);
  put(documents.data(), documents.size_bytes());
  file.commit();
  return {path, end_of_nats(header) + sizeof count + documents.size_bytes(), hash.hex()};
}

ScoreRecords read_score_records(const std::filesystem::path& path) {
  RecordsReader in(path);
  ScoreRecords out{.targets = static_cast<int64_t>(in.header().targets)};
  // Documents stand behind the nats that they divide: a second pass over the file would read 249 MB again, so the nats stay.
  std::vector<float> nats(in.header().targets);
  for (int64_t first = 0; first < out.targets; first += kScoreBlock) {
    const auto block =
        std::span(nats).subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(kScoreBlock, out.targets - first)));
    in.read(block.data(), block.size_bytes());
    const auto bad = std::find_if(block.begin(), block.end(), [](float nll) { return !std::isfinite(nll); });
    if (bad != block.end()) refuse_records(path, fmt::format("target {} is not a number", first + (bad - block.begin()) + 1));
    out.nats.push_back(sum_of_block(block));
  }
  if (in.header().version != kWithoutDocuments) out.documents = read_documents(in, path);
  size_t at = 0;
  for (const DocumentSize& document : out.documents) {
    out.document_nats.push_back(sum_of_block(std::span(nats).subspan(at, static_cast<size_t>(document.targets))));
    at += static_cast<size_t>(document.targets);
  }
  out.file = in.identity();
  return out;
}

}  // namespace fairway
