#include "report/run_list.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "recipe/recipe.h"
#include "report/groups.h"
#include "report/records.h"
#include "report/run_state.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kMostFolders = 4;
constexpr size_t kMostListed = 500, kMostLooked = 20000;

class Lister {
 public:
  explicit Lister(fs::path root) : root_(std::move(root)) {}
  std::vector<ListedRun> found;

  void look(const fs::path& folder, int depth) {
    std::error_code error;
    for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
         entry.increment(error)) {
      if (++looked_ > kMostLooked) return;
      if (entry->is_symlink(error) || !entry->is_directory(error)) continue;
      const FolderKind kind = folder_kind_of(entry->path());
      if (kind != FolderKind::other) found.push_back({entry->path().lexically_relative(root_).string(), entry->path()});
      if ((kind == FolderKind::other || kind == FolderKind::seeds) && depth < kMostFolders) look(entry->path(), depth + 1);
    }
  }

 private:
  fs::path root_;
  size_t looked_ = 0;
};

std::string state_word(const fs::path& folder) {
  const fs::path path = folder / "recipe.toml";
  const ordered_json state = run_state(folder, parse_recipe(read_file(path), path.string()));
  if (state["phase"].is_null()) return "finished";
  const auto phase = state["phase"].get<std::string>();
  return state["running"].get<bool>() ? phase : "stopped in " + phase;
}

void add_run_row(const fs::path& folder, ordered_json& row) {
  row["state"] = state_word(folder);
  const auto put = [&](const char* key, double value) {
    row[key] = std::isfinite(value) ? ordered_json(value) : ordered_json();
  };
  for (const ordered_json& record : last_records(folder / "metrics.jsonl")) {
    if (record.contains("val_bpb")) {
      put("val_bpb", number_of(record, "val_bpb"));
    } else {
      put("steps", number_of(record, "step"));
      put("loss", number_of(record, "loss"));
    }
  }
  for (const ordered_json& record : last_records(folder / "timing.jsonl"))
    put("train_seconds", number_of(record, "train_seconds"));
  put("score_bpb", number_of(read_record_file(folder / "score.json"), "val_bpb"));
  put("artifact_bytes", number_of(read_record_file(folder / "pack.json"), "artifact_bytes"));
}

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size()
                 ? std::string("0123456789abcdef").find(static_cast<char>(std::tolower(static_cast<unsigned char>(text[at]))))
                 : std::string::npos;
    };
    const size_t high = digit(i + 1), low = digit(i + 2);
    if (text[i] == '%' && high != std::string::npos && low != std::string::npos) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<ListedRun> list_runs(const fs::path& folder) {
  Lister lister(folder);
  lister.look(folder, 1);
  std::sort(lister.found.begin(), lister.found.end(), [](const ListedRun& a, const ListedRun& b) { return a.name < b.name; });
  return std::move(lister.found);
}

ordered_json folder_rows(const fs::path& folder) {
  const std::vector<ListedRun> found = list_runs(folder);
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < std::min(found.size(), kMostListed); ++i) {
    const FolderKind kind = folder_kind_of(found[i].path);
    ordered_json row{{"name", found[i].name},
                     {"kind", kind == FolderKind::run     ? "run"
                              : kind == FolderKind::seeds ? "seeds"
                                                          : "sweep"}};
    try {
      if (kind == FolderKind::run) add_run_row(found[i].path, row);
      if (kind == FolderKind::seeds) row["score_bpb"] = seeds_data(found[i].path)["mean"].value("score_bpb", ordered_json());
    } catch (const InputError&) {  // in the middle of a change, or broken: its own page says how
      row["state"] = "cannot be read";
    }
    rows.push_back(std::move(row));
  }
  return {{"runs", rows}, {"left_out", found.size() - rows.size()}};
}

std::vector<std::string> names_in_query(const std::string& query) {
  std::vector<std::string> names;
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    if (query.compare(at, 4, "run=") == 0) names.push_back(percent_decoded(query.substr(at + 4, end - at - 4)));
    at = end + 1;
  }
  return names;
}

}  // namespace fairway
