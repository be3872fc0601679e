// What a folder says of one seed: its log, its receipt, its artifact.
#include <fmt/core.h>

#include <cstdlib>
#include <regex>
#include <sstream>

#include "base/identity.h"
#include "base/json.h"
#include "base/sha256.h"
#include "recipe/recipe.h"
#include "submission/checker.h"

namespace fairway::submission {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr double kTrainLimit = 600, kScoreLimit = 600;  // seconds
// Scoring spec §3.2.
const std::vector<std::string> kAuditTests{"T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12"};

// The first group of the pattern's last match in a line of the log; empty when no line has it.
std::string last_match(const std::string& log, const std::string& pattern) {
  const std::regex expression(pattern);
  std::string found, line;
  for (std::istringstream lines(log); std::getline(lines, line);) {
    std::smatch match;
    if (line.size() <= kLongestLine && std::regex_search(line, match, expression)) found = match[1];
  }
  return found;
}

double last_number(const std::string& log, const std::string& pattern) {
  const std::string text = last_match(log, pattern);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' ? value : std::nan("");
}

}  // namespace

void Checker::check_training(const std::string& file, const std::string& log, const std::string& seed, const json& result) {
  if (log.find("\nseed:" + seed + "\n") == std::string::npos) wrong(file, "is not of seed " + seed);
  const double milliseconds = last_number(log, "train_loss:[^ ]+ train_time:([0-9.]+)ms");
  if (!(milliseconds <= kTrainLimit * 1e3))
    wrong(file, fmt::format("training took {:.3f} s, over {} s", milliseconds / 1e3, kTrainLimit));
  const double steps = last_number(log, "step:([0-9]+)[^ ]* train_loss:");
  if (differs(steps, number(result, "steps", "submission.json seed " + seed), 0))
    wrong(file, fmt::format("ends at step {:.0f}, but submission.json says {}", steps, result.value("steps", json()).dump()));
  const std::string hash = last_match(log, "recipe:([0-9a-f]{64})");
  if (hash.empty()) {
    wrong(file, "does not name its recipe");
    return;
  }
  try {
    Recipe recipe = parse_recipe(text_of("recipe.toml"), "recipe.toml");
    recipe.train.seed = std::stoll(seed);
    const auto by_hash = [](const std::string& name) { return Identities{}.tell(IdentityKind::recipe, {name}); };
    if (!differences(by_hash(recipe_hash(recipe)), by_hash(hash)).empty())
      wrong(file, "was made with a recipe that is not recipe.toml");
  } catch (const std::exception& error) {
    wrong("recipe.toml", error.what());
  }
}

void Checker::check_log(const std::string& seed, const json& result) {
  const std::string file = "train_seed" + seed + ".log", log = text_of(file);
  if (log.empty()) return;
  check_training(file, log, seed, result);
  const double bpb = last_number(log, "final_int8_zlib_roundtrip_exact val_loss:[0-9.]+ val_bpb:([0-9.]+)"),
               loss = last_number(log, "final_int8_zlib_roundtrip_exact val_loss:([0-9.]+)");
  if (differs(bpb, number(result, "val_bpb", "submission.json seed " + seed), 6e-9) ||
      differs(loss, number(result, "val_loss", "submission.json seed " + seed), 6e-9))
    wrong(file, fmt::format("its final score is {:.8f} bits per byte, but submission.json says {}", bpb,
                            result.value("val_bpb", json()).dump()));
  const double total = last_number(log, "Total submission size [^ ]+: ([0-9]+) bytes");
  const double artifact = number(result, "artifact_bytes", "submission.json seed " + seed),
               code = number(submission_, "bytes_code", "submission.json");
  if (differs(total, artifact + code, 0))
    wrong(file, fmt::format("its submission size is {:.0f}, artifact and code have {:.0f} bytes", total, artifact + code));
  const double seconds = last_number(log, "total_eval_time:([0-9.]+)s");
  if (!(seconds <= kScoreLimit)) wrong(file, fmt::format("scoring took {:.1f} s, over {} s", seconds, kScoreLimit));
}

void Checker::check_audit(const std::string& file, const json& receipt) {
  const json audit = receipt.value("audit", json());
  if (!audit.is_object()) {
    wrong(file, "has no audit");
    return;
  }
  std::set<std::string> held;
  for (const json& test : audit.value("tests", json::array())) {
    const std::string id =
        test.is_object() && test.contains("id") && test["id"].is_string() ? test["id"].get<std::string>() : "";
    if (test.is_object() && test.value("held", json(false)) == true)
      held.insert(id);
    else
      wrong(file, "test " + id + " of the audit failed");
  }
  for (const std::string& id : kAuditTests) {
    if (!held.contains(id)) wrong(file, "the audit does not show that " + id + " held");
  }
}

// The score again from the sums that the receipt keeps of it: nats and bytes of each block of targets.
void Checker::check_sums(const std::string& file, const json& receipt, const json& result) {
  const json records = receipt.value("records", json()), told = receipt.value("score", json()),
             score = told.is_object() ? told : json::object();
  const double targets = number(records, "targets", file + " records"), block = number(records, "block", file + " records");
  double sums[2] = {0, 0};
  const char* const names[2] = {"nats", "bytes"};
  for (int i = 0; i < 2; ++i) {
    const json values = records.is_object() ? records.value(names[i], json()) : json();
    if (!values.is_array() || differs(static_cast<double>(values.size()), std::ceil(targets / block), 0)) {
      wrong(file, fmt::format("its records have no list \"{}\" with a sum for each block of its targets", names[i]));
      return;
    }
    for (const json& value : values) sums[i] += value.is_number() ? value.get<double>() : std::nan("");
  }
  const std::pair<const char*, double> given[] = {
      {"tokens", targets}, {"bytes", sums[1]}, {"val_loss", sums[0] / targets}, {"val_bpb", sums[0] / std::log(2.0) / sums[1]}};
  for (const auto& [key, value] : given) {
    constexpr double kRounding = 1e-12;  // a score is written with all its digits
    if (differs(number(score, key, file + " score"), value, kRounding * std::abs(value)))
      wrong(file, fmt::format("its {} is {}, but its records give {}", key, score.value(key, json()).dump(), value));
    if (result.contains(key) && differs(number(result, key, "submission.json"), value, kRounding * std::abs(value)))
      wrong(file, fmt::format("its records give a {} of {}, but submission.json says {}", key, value, result[key].dump()));
  }
}

void Checker::check_receipt(const std::string& seed, const json& result) {
  const std::string file = "receipt_seed" + seed + ".json", text = text_of(file);
  ordered_json sealed = parse_json_or_discard<ordered_json>(text, (folder_ / file).string());
  if (text.empty() || !sealed.is_object()) {
    if (!text.empty()) wrong(file, "is not a JSON object");
    return;
  }
  const json receipt = parse_json(text, (folder_ / file).string());
  sealed.erase("sha256");
  if (receipt.value("sha256", json()) != sha256_hex(sealed.dump())) wrong(file, "was changed after it was written");
  const auto part = [&](const char* key) {
    return receipt.contains(key) && receipt[key].is_object() ? receipt[key] : json::object();
  };
  const json artifact = part("artifact"), settings = part("settings");
  if (artifact.value("sha256", json()) != result.value("artifact_sha256", json(0)) ||
      artifact.value("bytes", json()) != result.value("artifact_bytes", json(0)))
    wrong(file, "is of a different artifact from the one in submission.json");
  check_sums(file, receipt, result);
  const json mode = settings.value("mode", json());
  const auto known = mode.is_string() ? scoring_mode(mode.get<std::string>()) : std::nullopt;
  if (!known || !keeps_rules(known->base) || receipt.value("legal", json(false)) != true)
    wrong(file, "mode " + mode.dump() + " breaks the rules of scoring");
  else if (known->base == ScoreMode::slot)
    wrong(file, "mode " + mode.dump() + " is not in the sources that a submission ships");
  if (settings.value("tokens", json()) != 0) wrong(file, "only a part of the validation data was scored");
  if (part("data").value("shared_documents", json()) != 0)
    wrong(file, "does not show that training and validation text share no document");
  check_audit(file, receipt);
}

void Checker::check_artifact(const std::string& seed, const json& result) {
  const std::string file = "model_seed" + seed + ".fwy";
  if (!fs::is_regular_file(folder_ / file)) return;  // artifacts need not be shipped
  if (differs(static_cast<double>(fs::file_size(folder_ / file)), number(result, "artifact_bytes", "submission.json"), 0) ||
      result.value("artifact_sha256", json()) != sha256_of_file(folder_ / file))
    wrong(file, "is not the artifact that submission.json names");
}

}  // namespace fairway::submission
