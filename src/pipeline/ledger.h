// What a pipeline has done in a folder: one JSON file, replaced as a whole after every phase, so that a kill at any moment
// leaves the last complete state. One process at a time may hold it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/writer_lock.h"

namespace fairway::pipeline {

class Ledger {
 public:
  // Makes the folder and reads what the ledger holds. InputError when another process holds it, the folder cannot be made, or
  // the file is no ledger of this `kind`.
  Ledger(const std::filesystem::path& folder, const std::string& kind);

  bool begun() const { return begun_; }  // the file was there
  nlohmann::ordered_json& content() { return content_; }
  const nlohmann::ordered_json& content() const { return content_; }
  void save();

 private:
  std::filesystem::path path_;
  nlohmann::ordered_json content_;
  bool begun_ = false;
  std::optional<WriterLock> lock_;
};

// Whether a folder of runs, or of folders of them, holds a run that has made a step.
bool holds_any_run(const std::filesystem::path& folder);

// "run" lies in run.json; nothing when the folder has no such ledger.
nlohmann::ordered_json read_ledger(const std::filesystem::path& folder, const std::string& kind);

}  // namespace fairway::pipeline
