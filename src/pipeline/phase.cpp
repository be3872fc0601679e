#include "pipeline/phase.h"

#include "base/error.h"
#include "base/sha256.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

ordered_json identity_of(const fs::path& path) {
  return {{"bytes", static_cast<uint64_t>(fs::file_size(path))}, {"sha256", sha256_of_file(path)}};
}

}  // namespace

std::string mark_of(const Phase& phase, const fs::path& folder) {
  ordered_json parts{{"request", phase.request}, {"identity", phase.identity}};
  for (const std::string& name : phase.inputs)
    parts["inputs"][name] = fs::is_regular_file(folder / name) ? identity_of(folder / name) : ordered_json(nullptr);
  return sha256_hex(parts.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

ordered_json record_of(const Phase& phase, const fs::path& folder, const std::string& mark, const Outcome& outcome,
                       double seconds) {
  ordered_json record{{"mark", mark}, {"status", outcome.status}, {"seconds", seconds}, {"outputs", ordered_json::object()}};
  for (const std::string& name : phase.outputs) {
    if (!fs::is_regular_file(folder / name))
      throw WorkError(phase.name + ": ended without writing " + (folder / name).string());
    record["outputs"][name] = identity_of(folder / name);
  }
  record["result"] = phase.keep_result ? outcome.result : ordered_json::object();
  return record;
}

bool complete(const Phase& phase, const fs::path& folder, const ordered_json& record) {
  if (!record.is_object() || !record.contains("mark") || !record.contains("outputs")) return false;
  for (const std::string& name : phase.present) {
    if (!fs::exists(folder / name)) return false;
  }
  for (const std::string& name : phase.outputs) {
    if (!record["outputs"].contains(name) || !fs::is_regular_file(folder / name)) return false;
    if (record["outputs"][name] != identity_of(folder / name)) return false;
  }
  return record["mark"] == mark_of(phase, folder);
}

}  // namespace fairway::pipeline
