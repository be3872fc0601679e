#include "analysis/score_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace fairway {
namespace {

struct RecordsHeader {
  char magic[4] = {'F', 'W', 'S', 'R'};
  uint32_t version = 1;
  uint64_t targets = 0;
};
static_assert(sizeof(RecordsHeader) == 16);

[[noreturn]] void refuse_records(const std::filesystem::path& path, const std::string& what) {
  throw InputError(path.string() + ": " + what + "; expected the records that `fairway score --out` writes");
}

RecordsHeader read_records_header(const InputFile& file) {
  RecordsHeader header;
  const RecordsHeader known;
  const uint64_t size = file.size();
  if (file.read_at(&header, sizeof header, 0) != sizeof header || std::memcmp(header.magic, known.magic, 4) != 0)
    refuse_records(file.path(), "does not begin like score records");
  if (header.version != known.version) refuse_records(file.path(), fmt::format("version {} is not known", header.version));
  if (header.targets > size || size != sizeof header + sizeof(float) * header.targets)
    refuse_records(file.path(), fmt::format("{} bytes do not hold its {} targets", size, header.targets));
  return header;
}

}  // namespace

FileIdentity write_score_records(const std::filesystem::path& path, const ScoreLedger& ledger) {
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
  file.commit();
  return {path, sizeof header + sizeof(float) * header.targets, hash.hex()};
}

ScoreRecords read_score_records(const std::filesystem::path& path) {
  const InputFile file(path);
  const RecordsHeader header = read_records_header(file);
  ScoreRecords out{.file = {path, file.size(), ""}, .targets = static_cast<int64_t>(header.targets)};
  Sha256 hash;
  hash.update(&header, sizeof header);
  std::vector<float> block;
  for (int64_t first = 0; first < out.targets; first += kScoreBlock) {
    block.resize(static_cast<size_t>(std::min(kScoreBlock, out.targets - first)));
    const size_t bytes = block.size() * sizeof(float);
    if (file.read_at(block.data(), bytes, sizeof header + sizeof(float) * static_cast<uint64_t>(first)) != bytes)
      refuse_records(path, "became shorter while it was read");
    const auto bad = std::find_if(block.begin(), block.end(), [](float nll) { return !std::isfinite(nll); });
    if (bad != block.end()) refuse_records(path, fmt::format("target {} is not a number", first + (bad - block.begin()) + 1));
    hash.update(block.data(), bytes);
    out.nats.push_back(sum_of_block(block));
  }
  out.file.sha256 = hash.hex();
  return out;
}

}  // namespace fairway
