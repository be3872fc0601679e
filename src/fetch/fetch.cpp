#include "fetch/fetch.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "fetch/http.h"
#include "fetch/partial_file.h"

namespace fairway::fetch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 8;  // at one mirror, as long as each brings something new

struct Stopped {};

bool is_there(const fs::path& place, const ListedFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(place, error) || fs::file_size(place, error) != file.bytes || error) return false;
  return sha256_of_file(place) == file.sha256;
}

class Fetching {
 public:
  explicit Fetching(const FetchOptions& options) : options_(options), files_(wanted_files(options.set, options.shards)) {
    for (const ListedFile& file : files_) progress_.of_bytes += file.bytes;
    progress_.files = files_.size();
  }

  FetchResult run() {
    const Stopwatch clock;
    try {
      find_missing();
      for (const auto& [number, file] : missing_) get_file(number, *file);
    } catch (const Stopped&) {
      result_.stopped = true;
    }
    result_.files = files_.size();
    result_.bytes = progress_.of_bytes;
    result_.fetched_bytes = progress_.fetched;
    result_.seconds = clock.seconds();
    return result_;
  }

 private:
  void find_missing() {
    uint64_t needed = 0;
    for (size_t i = 0; i < files_.size(); ++i) {
      if (options_.stop()) throw Stopped{};
      const fs::path place = options_.out / files_[i].name;
      if (fs::is_directory(place)) throw InputError(place.string() + ": is a folder; expected a file or nothing there");
      if (is_there(place, files_[i])) {
        progress_.bytes += files_[i].bytes;
        continue;
      }
      if (fs::exists(place)) options_.say(place.string() + ": not the bytes that the list tells; fetching it again");
      missing_.emplace_back(i, &files_[i]);
      needed += files_[i].bytes;
    }
    std::error_code error;
    const fs::space_info space = fs::space(options_.out, error);
    if (!error && space.available < needed)
      throw WorkError(fmt::format("{}: {} bytes are to be fetched, but only {} are free there", options_.out.string(), needed,
                                  space.available));
    if (!missing_.empty() && options_.set.mirrors.empty())
      throw InputError(fmt::format("set {}: the list names no mirror; name one with --mirror", options_.set.name));
  }

  void get_file(size_t number, const ListedFile& file) {
    progress_.file = file.name;
    progress_.number = number + 1;
    PartialFile partial(options_.out / file.name);
    if (partial.bytes() > file.bytes) partial.restart();
    result_.resumed_bytes += partial.bytes();
    const uint64_t before = progress_.bytes;
    std::string reasons;
    for (const std::string& mirror : options_.set.mirrors) {
      const std::string reason = get_from(mirror + file.path, file, partial, before);
      if (reason.empty()) {
        partial.commit();
        progress_.bytes = before + file.bytes;
        ++result_.fetched_files;
        return;
      }
      options_.say(mirror + file.path + ": " + reason);
      reasons += fmt::format("; {}{}: {}", mirror, file.path, reason);
    }
    std::string kept;
    if (partial.bytes() > 0)
      kept = fmt::format("; {} of its {} bytes are kept, and the same command goes on from there", partial.bytes(), file.bytes);
    throw WorkError(fmt::format("{}: no mirror has it{}{}", (options_.out / file.name).string(), reasons, kept));
  }

  // Why it is not whole and right; empty when it is.
  std::string get_from(const std::string& address, const ListedFile& file, PartialFile& partial, uint64_t before) {
    bool fresh = partial.bytes() == 0;  // nothing in it is of an earlier try
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
      const uint64_t from = partial.bytes();
      std::string problem = from < file.bytes ? get_rest(address, file, partial, before, fresh) : "";
      if (partial.bytes() == file.bytes) {
        const std::string sha256 = partial.sha256();
        if (sha256 == file.sha256) return "";
        partial.restart();
        if (fresh) return fmt::format("its SHA-256 is {}…, expected {}…", sha256.substr(0, 12), file.sha256.substr(0, 12));
        options_.say(file.name + ": what was kept of it does not fit; fetching all of it again");
        fresh = true;
        continue;
      }
      if (problem.empty()) problem = fmt::format("it sent {} of {} bytes", partial.bytes(), file.bytes);
      if (partial.bytes() <= from || stalled_) return problem;
    }
    return fmt::format("the connection broke {} times", kMostTries);
  }

  std::string get_rest(const std::string& address, const ListedFile& file, PartialFile& partial, uint64_t before, bool& fresh) {
    HttpRequest request{.address = address, .from = partial.bytes(), .most_bytes = file.bytes};
    request.stall_seconds = options_.stall_seconds;
    if (begun_ < 0) begun_ = seconds_now();
    const auto tell = [&] {
      progress_.bytes = before + partial.bytes();
      progress_.seconds = seconds_now() - begun_;
      options_.progress(progress_);
    };
    request.begin = [&](uint64_t at) {
      if (at == 0 && partial.bytes() > 0) partial.restart(), fresh = true;
    };
    request.take = [&](std::string_view bytes) {
      partial.append(bytes);
      progress_.fetched += bytes.size();
      tell();
    };
    request.stop = options_.stop;
    const HttpAnswer answer = http_get(request);
    if (answer.stopped) throw Stopped{};
    stalled_ = answer.stalled;
    if (answer.range_refused) partial.restart(), fresh = true;
    return answer.problem;
  }

  const FetchOptions& options_;
  std::vector<ListedFile> files_;
  std::vector<std::pair<size_t, const ListedFile*>> missing_;
  FetchProgress progress_;
  FetchResult result_;
  double begun_ = -1;
  bool stalled_ = false;  // the last answer; the next mirror may be quicker
};

}  // namespace

std::vector<ListedFile> wanted_files(const FileSet& set, std::optional<int64_t> shards) {
  std::vector<ListedFile> out;
  int64_t taken = 0;
  for (const ListedFile& file : set.files) {
    if (file.is_train_shard() && shards && taken >= *shards) continue;
    taken += file.is_train_shard() ? 1 : 0;
    out.push_back(file);
  }
  if (shards && taken < *shards)
    throw InputError(fmt::format("--shards {}: the set {} has {} training shards", *shards, set.name, taken));
  return out;
}

FetchResult fetch(const FetchOptions& options) {
  const std::error_code error = disk::make_folders(options.out);
  if (!fs::is_directory(options.out))
    throw InputError(fmt::format("--out {}: is no folder and none can be made there{}", options.out.string(),
                                 error ? " (" + error.message() + ")" : ""));
  const WriterLock lock = WriterLock::of_folder(options.out);
  return Fetching(options).run();
}

}  // namespace fairway::fetch
