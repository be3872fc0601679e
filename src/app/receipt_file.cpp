#include "app/receipt_file.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "data/shard.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kSeal = "sha256";

ordered_json file_json(const fs::path& path) {
  return {{"path", fs::absolute(path).lexically_normal().string()},
          {"bytes", static_cast<uint64_t>(fs::file_size(path))},
          {"sha256", sha256_of_file(path)}};
}

std::string seal_of(ordered_json receipt) {
  receipt.erase(kSeal);
  return sha256_hex(receipt.dump());
}

ordered_json settings_json(const ScoringFlags& flags, const ScoreSettings& settings) {
  ordered_json out{{"mode", name_of(settings.score.mode)},
                   {"context", settings.score.context},
                   {"stride", settings.score.stride},
                   {"tokens", flags.tokens},
                   {"documents", settings.score.documents},
                   {"all_targets", flags.all_targets},
                   {"set", flags.overrides}};
  if (!flags.recipe.empty()) out["recipe"] = flags.recipe;
  return out;
}

ScoringFlags flags_of(const ordered_json& receipt) {
  const ordered_json& settings = receipt.at("settings");
  ScoringFlags flags;
  flags.from = receipt.at("from");
  flags.data = receipt.at("data").at("path");
  flags.mode = settings.at("mode");
  flags.context = settings.at("context");
  flags.stride = settings.at("stride");
  flags.tokens = settings.at("tokens");
  flags.documents = settings.at("documents");
  flags.all_targets = settings.at("all_targets");
  flags.overrides = settings.at("set").get<std::vector<std::string>>();
  if (settings.contains("recipe")) flags.recipe = settings.at("recipe");
  return flags;
}

}  // namespace

ordered_json make_receipt(const Scoring& scoring, const ScoringFlags& flags, const ScoredRun& run) {
  ordered_json shards = ordered_json::array();
  for (const fs::path& path : data::list_validation(flags.data)) shards.push_back(file_json(path));
  return {{"receipt", 1},
          {"from", fs::absolute(flags.from).lexically_normal().string()},
          {"artifact", file_json(scoring.source.file.path)},
          {"data", {{"path", fs::absolute(flags.data).lexically_normal().string()}, {"shards", shards}}},
          {"tokenizer", file_json(fs::path(flags.data) / "tokenizer.model")},
          {"program", file_json("/proc/self/exe")},
          {"settings", settings_json(flags, scoring.settings)},
          {"legal", is_legal(scoring.settings)},
          {"score", score_json(scoring, scoring.settings, run)},
          {"records", records_hash(run.ledger)}};
}

void require_receipt_of(const ordered_json& receipt, const std::string& path, const Scoring& scoring,
                        const ScoringFlags& flags) {
  if (receipt.at("artifact").at("sha256") != scoring.source.file.sha256)
    throw InputError(path + ": is the receipt of other bytes than " + scoring.source.file.path.string());
  const ordered_json &was = receipt.at("settings"), is = settings_json(flags, scoring.settings);
  for (const auto& [key, value] : is.items()) {
    if (key == "tokens" || key == "all_targets") continue;
    if (!was.contains(key) || was.at(key) != value)
      throw InputError(fmt::format("{}: is the receipt of a score with {} {}, not {}", path, key,
                                   was.contains(key) ? was.at(key).dump() : "unset", value.dump()));
  }
}

ordered_json tests_json(const AuditReport& report) {
  ordered_json tests = ordered_json::array();
  for (const TestResult& test : report.tests)
    tests.push_back({{"id", test.id},
                     {"property", test.property},
                     {"held", test.held},
                     {"detail", test.detail},
                     {"seconds", test.seconds}});
  return tests;
}

void add_tests(ordered_json& receipt, const AuditReport& report, int64_t tokens) {
  receipt["audit"] = {{"legal", report.legal()}, {"tokens", tokens}, {"tests", tests_json(report)}};
}

void write_receipt(const fs::path& path, ordered_json receipt) {
  receipt[kSeal] = seal_of(receipt);
  write_file_atomic(path, receipt.dump(2) + "\n");
}

ordered_json read_receipt(const fs::path& path) {
  constexpr uint64_t kMostBytes = 1 << 24;
  ordered_json receipt = parse_json_or_discard<ordered_json>(read_file(path, kMostBytes), path.string());
  if (!receipt.is_object() || receipt.value("receipt", 0) != 1 || !receipt.contains(kSeal))
    throw InputError(path.string() + ": no receipt; expected what `fairway score --out` writes");
  if (receipt.at(kSeal) != seal_of(receipt)) throw InputError(path.string() + ": was changed after it was written");
  return receipt;
}

namespace {

// Every test of the audit must be on the receipt, and held.
void check_tests(const ordered_json& receipt, std::vector<std::string>& wrong) {
  if (!receipt.contains("audit")) {
    wrong.emplace_back("has no audit yet; add one with fairway audit --receipt");
    return;
  }
  const ordered_json& tests = receipt.at("audit").at("tests");
  constexpr int kTests = 11;
  for (int number = 1; number <= kTests; ++number) {
    const std::string id = fmt::format("T{}", number);
    const auto test = std::find_if(tests.begin(), tests.end(), [&](const ordered_json& t) { return t.at("id") == id; });
    if (test == tests.end()) {
      wrong.push_back(id + " of the audit was left out");
    } else if (!test->at("held").get<bool>()) {
      wrong.push_back(id + " of the audit did not hold: " + test->at("detail").get<std::string>());
    }
  }
}

}  // namespace

std::vector<std::string> verify_receipt(const ordered_json& receipt, const CommonFlags& common, bool again) {
  std::vector<std::string> wrong;
  const auto check = [&](const std::string& what, const ordered_json& file) {
    const fs::path path = file.at("path").get<std::string>();
    if (!fs::exists(path)) {
      wrong.push_back(what + " is gone: " + path.string());
    } else if (sha256_of_file(path) != file.at("sha256").get<std::string>()) {
      wrong.push_back(what + " has other bytes than were scored: " + path.string());
    }
  };
  check("the artifact", receipt.at("artifact"));
  for (const ordered_json& shard : receipt.at("data").at("shards")) check("a shard", shard);
  check("the tokenizer", receipt.at("tokenizer"));
  if (sha256_of_file("/proc/self/exe") != receipt.at("program").at("sha256").get<std::string>())
    wrong.emplace_back("this is another program than the one that scored");
  check_tests(receipt, wrong);
  if (!receipt.at("legal").get<bool>()) wrong.emplace_back("the mode breaks the rules (legal: false)");
  if (!again || !wrong.empty()) return wrong;
  const std::unique_ptr<Scoring> scoring = open_scoring(flags_of(receipt));
  Machine machine(common);
  const ScoredRun run = score_stream(*scoring, scoring->settings, scoring->stream, machine, common.quiet);
  if (records_hash(run.ledger) != receipt.at("records").get<std::string>())
    wrong.emplace_back(fmt::format("scored again, the records differ: {:.6f} bits per byte now", run.score.bits_per_byte()));
  return wrong;
}

}  // namespace fairway::app
