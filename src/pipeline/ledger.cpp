#include "pipeline/ledger.h"

#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "stages/train_stage.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr uint64_t kMostBytes = uint64_t{1} << 26;

}  // namespace

bool holds_any_run(const fs::path& folder) {
  for (const fs::directory_entry& one : fs::directory_iterator(folder))
    if (one.is_directory() && (holds_run(one.path()) || holds_any_run(one.path()))) return true;
  return false;
}

ordered_json read_ledger(const fs::path& folder, const std::string& kind) {
  const fs::path path = folder / (kind + ".json");
  if (!fs::exists(path)) return nullptr;
  ordered_json content = parse_json_or_discard<ordered_json>(read_file(path, kMostBytes), path.string());
  if (!content.is_object() || !content.contains("ledger") || content["ledger"] != kind)
    throw InputError(path.string() + ": not a ledger of `fairway run`; move it away or choose another --out");
  return content;
}

Ledger::Ledger(const fs::path& folder, const std::string& kind) : path_(folder / (kind + ".json")) {
  if (const std::error_code error = disk::make_folders(folder))
    throw InputError("--out " + folder.string() + ": cannot be created (" + error.message() + ")");
  lock_.emplace(WriterLock::of_folder(folder));
  content_ = read_ledger(folder, kind);
  begun_ = content_.is_object();
  if (!begun_) content_ = {{"ledger", kind}};
}

void Ledger::save() {
  write_file_atomic(path_, content_.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  begun_ = true;
}

}  // namespace fairway::pipeline
