#include "data/document_hash_writer.h"

#include <algorithm>
#include <queue>

namespace fairway::data {
namespace {

constexpr uint64_t kHashBuffer = 1 << 13;  // hashes of a run in memory while runs are merged, and of the output

// One sorted run, read a buffer at a time.
class SortedRun {
 public:
  SortedRun(const TokenStream& stream, uint64_t begin, uint64_t end) : stream_(&stream), next_(begin), end_(end) { refill(); }

  bool empty() const { return at_ == buffer_.size(); }
  uint64_t first() const { return buffer_[at_]; }
  void pop() {
    if (++at_ == buffer_.size()) refill();
  }

 private:
  void refill() {
    buffer_.resize(std::min(kHashBuffer, end_ - next_));
    stream_->read_hashes(next_, buffer_);
    next_ += buffer_.size();
    at_ = 0;
  }

  const TokenStream* stream_;
  uint64_t next_, end_;
  std::vector<uint64_t> buffer_;
  size_t at_ = 0;
};

std::vector<SortedRun> sorted_runs(TokenStream& stream, uint64_t length) {
  const uint64_t count = stream.state().hashes;
  std::vector<uint64_t> held;
  for (uint64_t begin = 0; begin < count; begin += length) {
    held.resize(std::min(length, count - begin));
    stream.read_hashes(begin, held);
    std::sort(held.begin(), held.end());
    stream.write_hashes(begin, held);
  }
  std::vector<SortedRun> runs;
  for (uint64_t begin = 0; begin < count; begin += length) runs.emplace_back(stream, begin, std::min(begin + length, count));
  return runs;
}

class HashOutput {
 public:
  HashOutput(const std::filesystem::path& path, uint64_t count) : file_(path) {
    put(kHashFileMagic);
    put(count);
  }
  void put(uint64_t value) {
    buffer_.push_back(value);
    if (buffer_.size() == kHashBuffer) flush();
  }
  std::string finish() {
    flush();
    file_.commit();
    return sum_.hex();
  }

 private:
  void flush() {
    const size_t bytes = sizeof(uint64_t) * buffer_.size();
    file_.write(buffer_.data(), bytes);
    sum_.update(buffer_.data(), bytes);
    buffer_.clear();
  }

  AtomicFile file_;
  Sha256 sum_;
  std::vector<uint64_t> buffer_;
};

}  // namespace

ManifestHashes write_hash_file(TokenStream& stream, const std::filesystem::path& folder, uint64_t run) {
  std::vector<SortedRun> runs = sorted_runs(stream, run);
  const auto later = [&](size_t a, size_t b) { return runs[a].first() > runs[b].first(); };
  std::priority_queue<size_t, std::vector<size_t>, decltype(later)> order(later);
  for (size_t i = 0; i < runs.size(); ++i) order.push(i);
  HashOutput out(folder / kHashFileName, stream.state().hashes);
  while (!order.empty()) {
    const size_t i = order.top();
    order.pop();
    out.put(runs[i].first());
    runs[i].pop();
    if (!runs[i].empty()) order.push(i);
  }
  return {kHashFileName, stream.state().hashes, out.finish()};
}

}  // namespace fairway::data
