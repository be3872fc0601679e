// A run's folder and its records: recipe.toml, metrics.jsonl (what repeats bit for bit), timing.jsonl (what does not) and
// train.log in the challenge's line format. Resuming cuts the records back to the checkpoint they go on from.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/writer_lock.h"
#include "recipe/recipe.h"

namespace fairway {

struct StepRecord {
  int64_t step = 0;  // counted from 1
  double loss = 0, gradient_norm = 0, learning_rate_scale = 0, momentum = 0;
  bool looped = false, fake_quant = false;
};

// Lines that a file did not take, by its name.
using UnwrittenRecords = std::map<std::string, std::string>;

// Whether the folder holds weights or the records of a step. What a command left behind that ended before its first step is
// no run: the next one may have the folder.
bool holds_run(const std::filesystem::path& folder);

class RunFolder {
 public:
  // Makes the folder, takes its lock and writes the recipe. InputError when it holds another run, is in use or cannot be
  // written. A run may be resumed with more steps or seconds than it had: open_records() writes that recipe.
  RunFolder(const std::filesystem::path& path, const Recipe& recipe, bool resume);
  // Of a rank that writes nothing: records and logs vanish.
  RunFolder() = default;
  RunFolder(const RunFolder&) = delete;

  void require_space(size_t whole) const;  // for checkpoints and weights, of which some may be there already
  // Drops records after `step`, and adds those that only the checkpoint has. Returns the seconds of training recorded up to
  // `step`. InputError where steps before it have no record.
  double cut_back(int64_t step, const UnwrittenRecords& unwritten = {});
  const std::string& extension() const { return extension_; }  // a sentence, where the run is to become longer; else empty
  void open_records();                                         // after cut_back
  void record(const StepRecord& record, double elapsed, double step_seconds, double waited);
  void record_validation(int64_t step, double loss, double bpb);
  void log(const std::string& line);  // train.log
  void sync();                        // before a checkpoint: it must not know of steps that a power cut takes from the records
  // Empty while all of that is in the files; else which of them cannot be written, and why. To lose it silently is wrong, and
  // so is to end without a checkpoint: the loop asks after every step.
  const std::string& trouble() const { return trouble_; }
  const UnwrittenRecords& unwritten() const { return unwritten_; }  // for the checkpoint

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoint"; }

 private:
  bool writes() const { return lock_.has_value(); }
  void put(const char* name, const std::string& line);
  void note_trouble(const std::exception& error);

  std::filesystem::path path_;
  std::optional<WriterLock> lock_;
  std::map<std::string, AppendFile> records_;
  UnwrittenRecords unwritten_;
  std::string trouble_, extension_;
  std::string recipe_;  // to be written with the records
};

}  // namespace fairway
