#include "submission/check.h"

#include <fmt/core.h>

#include <regex>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "submission/checker.h"

namespace fairway::submission {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kByteLimit = 16'000'000;
constexpr size_t kSeedsNeeded = 3;

}  // namespace

std::string Checker::text_of(const std::string& file) {
  if (!fs::is_regular_file(folder_ / file) || fs::file_size(folder_ / file) == 0) {
    wrong(file, "is missing or empty");
    return "";
  }
  return read_file(folder_ / file);
}

json Checker::object_in(const std::string& file) {
  const std::string text = text_of(file);
  if (text.empty()) return json::object();
  json record = parse_json_or_discard(text, (folder_ / file).string());
  if (!record.is_object()) {
    wrong(file, "is not a JSON object");
    return json::object();
  }
  return record;
}

double Checker::number(const json& record, const char* key, const std::string& place) {
  if (record.is_object() && record.contains(key) && record[key].is_number() && std::isfinite(record[key].get<double>()))
    return record[key].get<double>();
  wrong(place, fmt::format("has no number \"{}\"", key));
  return std::nan("");
}

void Checker::check_identity() {
  for (const char* key : {"author", "github_id", "name", "blurb", "date", "track"}) {
    if (!submission_.contains(key) || !submission_[key].is_string() || submission_[key].get<std::string>().empty())
      wrong("submission.json", fmt::format("has no text \"{}\"", key));
  }
  const json told = submission_.value("date", json(""));
  const std::string date = told.is_string() ? told.get<std::string>() : "";
  if (!std::regex_match(date, std::regex("20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")))
    wrong("submission.json", "date \"" + date + "\" is not YYYY-MM-DD");
  if (submission_.value("track", json()) != "10min_16mb") wrong("submission.json", "track is not \"10min_16mb\"");
}

void Checker::check_seed_list() {
  std::set<std::string> distinct;
  if (submission_.contains("seeds") && submission_["seeds"].is_array()) {
    for (const json& seed : submission_["seeds"]) {
      if (!seed.is_number_unsigned()) {  // it becomes a part of file names
        wrong("submission.json", seed.dump() + " under \"seeds\" is not a seed");
        continue;
      }
      seeds_.push_back(seed.dump());
      if (!distinct.insert(seed.dump()).second) wrong("submission.json", "seed " + seed.dump() + " appears twice");
    }
  }
  if (distinct.size() < kSeedsNeeded)
    wrong("submission.json", fmt::format("{} different seeds; the rules require {}", distinct.size(), kSeedsNeeded));
  const json results = submission_.value("seed_results", json::object());
  for (const std::string& seed : distinct) {
    if (!results.is_object() || !results.contains(seed) || !results[seed].is_object())
      wrong("submission.json", "seed_results has no object for seed " + seed);
  }
  if (results.is_object() && results.size() != distinct.size())
    wrong("submission.json", fmt::format("{} seeds, but results of {}", distinct.size(), results.size()));
}

void Checker::check_means() {
  for (const char* key : {"val_bpb", "val_loss"}) {
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(seeds_.size());
    for (const std::string& seed : seeds_)
      sum += number(submission_["seed_results"][seed], key, "submission.json seed " + seed);
    for (const std::string& seed : seeds_) {
      const json& result = submission_["seed_results"][seed];
      const double away =
          (result.contains(key) && result[key].is_number() ? result[key].get<double>() : std::nan("")) - sum / n;
      squares += away * away;
    }
    if (differs(number(submission_, key, "submission.json"), sum / n, 1e-9))
      wrong("submission.json", fmt::format("{} is not the mean over seeds, {:.8f}", key, sum / n));
    const std::string spread = std::string(key) + "_std";
    if (submission_.contains(spread) &&
        differs(number(submission_, spread.c_str(), "submission.json"), std::sqrt(squares / (n - 1)), 1e-9))
      wrong("submission.json", spread + " is not the sample deviation over seeds");
  }
}

void Checker::check_bytes() {
  double largest = 0;
  for (const std::string& seed : seeds_)
    largest = std::max(largest, number(submission_["seed_results"][seed], "artifact_bytes", "submission.json seed " + seed));
  const double code = number(submission_, "bytes_code", "submission.json"),
               total = number(submission_, "bytes_total", "submission.json");
  if (differs(total, largest + code, 0))
    wrong("submission.json",
          fmt::format("bytes_total {:.0f} is not the largest artifact, {:.0f}, and the code, {:.0f}", total, largest, code));
  if (!(largest + code <= kByteLimit))
    wrong("submission.json", fmt::format("artifact and code have {:.0f} bytes, over {:.0f}", largest + code, kByteLimit));
  const fs::path bundle = folder_ / "source.7z";
  if (!fs::is_regular_file(bundle))
    wrong("source.7z", "is missing or empty");
  else if (differs(static_cast<double>(fs::file_size(bundle)), code, 0))
    wrong("source.7z", fmt::format("has {} bytes, submission.json counts {:.0f}", fs::file_size(bundle), code));
}

void Checker::check_compliance() {
  const json compliance = submission_.value("compliance", json::object());
  for (const char* key : {"train_under_600s", "artifact_under_16mb", "eval_under_600s", "audit_held"}) {
    if (!compliance.is_object() || compliance.value(key, json(false)) != true)
      wrong("submission.json", fmt::format("compliance does not state {}", key));
  }
}

void Checker::check_readme() {
  const std::string readme = text_of("README.md");
  for (const std::string& seed : seeds_) {
    const json& result = submission_["seed_results"][seed];
    if (!result.contains("val_bpb") || !result["val_bpb"].is_number() || !result.contains("artifact_bytes")) continue;
    const std::string score = fmt::format("{:.8f}", result["val_bpb"].get<double>()), bytes = result["artifact_bytes"].dump();
    if (readme.find("| " + seed + " |") == std::string::npos || readme.find(score) == std::string::npos ||
        readme.find(bytes) == std::string::npos)
      wrong("README.md", "its table lacks seed " + seed + " with its score and bytes");
  }
}

// run.sh must start every seed as submission.json says that it was started.
void Checker::check_launch() {
  const json hardware = submission_.value("hardware", json::object());
  const std::string backend = hardware.is_object() ? hardware.value("backend", json("")).dump() : "\"\"";
  const double ranks = number(hardware, "ranks", "submission.json hardware");
  std::istringstream script(text_of("run.sh"));
  std::set<std::string> started;
  for (std::string line; std::getline(script, line);) {
    std::smatch seed;
    if (line.size() > kLongestLine || !std::regex_search(line, seed, std::regex(" --seed ([0-9]+)( |$)"))) continue;
    started.insert(seed[1]);
    std::smatch launched;
    const bool many = std::regex_search(line, launched, std::regex("^mpirun -n ([0-9]+) "));
    if (differs(many ? std::strtod(launched[1].str().c_str(), nullptr) : 1, ranks, 0))
      wrong("run.sh", fmt::format("does not start seed {} with {:.0f} ranks", seed[1].str(), ranks));
    if (line.find(" --backend " + (backend.size() > 2 ? backend.substr(1, backend.size() - 2) : "?")) == std::string::npos)
      wrong("run.sh", fmt::format("does not start seed {} on the backend {}", seed[1].str(), backend));
  }
  for (const std::string& seed : seeds_)
    if (!started.contains(seed)) wrong("run.sh", "does not start seed " + seed);
}

std::vector<std::string> Checker::run() {
  submission_ = object_in("submission.json");
  for (const char* file : {"requirements.txt", "recipe.toml"}) text_of(file);
  check_identity();
  check_seed_list();
  if (!submission_.contains("seed_results") || !submission_["seed_results"].is_object()) {
    wrong("submission.json", "has no object \"seed_results\"");
    return problems_;
  }
  check_means();
  check_bytes();
  check_compliance();
  check_readme();
  check_launch();
  for (const std::string& seed : seeds_) {
    const json& told = submission_["seed_results"][seed];
    const json result = told.is_object() ? told : json::object();
    check_log(seed, result);
    check_receipt(seed, result);
    check_artifact(seed, result);
  }
  return problems_;
}

std::vector<std::string> check_folder(const fs::path& folder) {
  if (!fs::is_directory(folder)) return {folder.string() + ": not a folder"};
  return Checker(folder).run();
}

}  // namespace fairway::submission
