#include "app/receipt_file.h"

#include <fmt/core.h>

#include "analysis/receipt_identity.h"
#include "analysis/receipt_numbers.h"
#include "analysis/score_records.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "report/shared_documents.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kSeal = "sha256";
constexpr int kReceiptVersion = 3;  // 1 kept no sums, 2 no machine, no shared documents and no beginnings of the records

// Both places: the one relative to the receipt is looked at first, and stays true when all of it is moved.
ordered_json place_json(const fs::path& path, const fs::path& folder) {
  const fs::path whole = fs::absolute(path).lexically_normal(), home = fs::absolute(folder).lexically_normal();
  return {{"path", whole.string()}, {"relative", whole.lexically_relative(home).string()}};
}

ordered_json file_json(const FileIdentity& file, const fs::path& folder) {
  ordered_json out = place_json(file.path, folder);
  out["bytes"] = file.bytes;
  out["sha256"] = file.sha256;
  return out;
}

ordered_json files_json(const std::vector<FileIdentity>& files, const fs::path& folder) {
  ordered_json out = ordered_json::array();
  for (const FileIdentity& file : files) out.push_back(file_json(file, folder));
  return out;
}

std::string seal_of(ordered_json receipt) {
  receipt.erase(kSeal);
  return sha256_hex(receipt.dump());
}

ordered_json data_json(const Scoring& scoring, const ScoreRequest& request, const fs::path& folder) {
  ordered_json out = place_json(request.data, folder);
  out["shards"] = files_json(scoring.held_out.shards, folder);
  const SharedTexts texts = shared_texts(scoring.source.file.path.parent_path(), scoring.text);
  out["text"] = scoring.text;
  out["shared_documents"] = texts.shared ? ordered_json(*texts.shared) : ordered_json(nullptr);
  out["shared_documents_detail"] = texts.detail;
  if (!scoring.held_out.count_files.empty()) out["byte_counts"] = files_json(scoring.held_out.count_files, folder);
  return out;
}

// Beginnings of the records: what a few windows, scored again from the artifact, must give.
ordered_json beginnings_json(const ScoreLedger& ledger, int64_t context) {
  ordered_json out = ordered_json::array();
  for (const int64_t windows : {1, 4, 16, 64}) {
    const int64_t targets = windows * context;
    if (targets > ledger.targets()) break;
    double nats = 0;
    for (int64_t target = 1; target <= targets; ++target) nats += static_cast<double>(ledger.nll(target));
    out.push_back({{"targets", targets}, {"nats", nats}, {"sha256", records_hash(ledger, targets)}});
  }
  return out;
}

ordered_json make_receipt(const Scoring& scoring, const ScoreRequest& request, const ScoredRun& run,
                          const FileIdentity& records, const fs::path& folder, const ordered_json& machine) {
  ordered_json tokenizer = file_json(scoring.held_out.tokenizer_file, folder);
  tokenizer["identity"] = scoring.held_out.tokenizer.identity();
  return {{"receipt", kReceiptVersion},
          {"from", scoring.source.folder.empty() ? "file" : "run"},
          {"artifact", file_json(scoring.source.file, folder)},
          {"data", data_json(scoring, request, folder)},
          {"tokenizer", tokenizer},
          {"program", {{"sha256", sha256_of_file("/proc/self/exe")}}},
          {"machine", machine},
          {"recipe", recipe_hash(scoring.source.recipe)},
          {"settings", settings_json(request, scoring.settings)},
          {"legal", is_legal(scoring.settings)},
          {"score", score_json(scoring, scoring.settings, run)},
          {"records",
           {{"sha256", records_hash(run.ledger)},
            {"file", file_json(records, folder)},
            {"targets", run.score.tokens},
            {"beginnings", beginnings_json(run.ledger, scoring.settings.score.context)},
            {"block", kScoreBlock},
            {"nats", run.blocks.nats},
            {"bytes", run.blocks.bytes}}}};
}

Identities identities_of(const Scoring& scoring, const ScoreRequest& request) {
  const auto files = [](const std::vector<FileIdentity>& list) {
    std::vector<std::string> hashes;
    for (const FileIdentity& file : list) hashes.push_back(file.sha256);
    return files_identity(hashes);
  };
  const ScoreRecipe& score = scoring.settings.score;
  Identities out{.by = scoring.source.file.path.string()};
  out.tell(IdentityKind::text, {scoring.text})
      .tell(IdentityKind::tokenizer, scoring.held_out.tokenizer.names())
      .tell(IdentityKind::artifact, {scoring.source.file.sha256})
      .tell(IdentityKind::recipe, {recipe_hash(scoring.source.recipe)})
      .tell(IdentityKind::shards, {files(scoring.held_out.shards)})
      .tell(IdentityKind::byte_counts, {files(scoring.held_out.count_files)})
      .tell(IdentityKind::form, {form_identity(scoring.source.packed)})
      .tell(IdentityKind::mode, {name_of(score.mode)})
      .tell(IdentityKind::context, {fmt::format("{}", score.context)})
      .tell(IdentityKind::stride, {fmt::format("{}", score.stride)})
      .tell(IdentityKind::documents, {fmt::format("{}", score.documents)})
      .tell(IdentityKind::settings, {ordered_json(request.overrides).dump()})
      .tell(IdentityKind::legal, {fmt::format("{}", is_legal(scoring.settings))});
  return out;
}

}  // namespace

ordered_json settings_json(const ScoreRequest& request, const ScoreSettings& settings) {
  ordered_json out{{"mode", name_of(settings.score.mode)},
                   {"context", settings.score.context},
                   {"stride", settings.score.stride},
                   {"tokens", request.tokens},
                   {"documents", settings.score.documents},
                   {"all_targets", request.all_targets},
                   {"set", request.overrides}};
  if (!request.recipe.empty()) out["recipe"] = request.recipe;
  return out;
}

void write_scored(const fs::path& folder, const Scoring& scoring, const ScoreRequest& request, const ScoredRun& run,
                  const ordered_json& machine) {
  const std::vector<DocumentSize> documents =
      document_sizes(scoring.stream, scoring.held_out.target_bytes(), scoring.source.recipe.model.bos);
  const FileIdentity records = write_score_records(folder / kRecordsName, run.ledger, documents);
  const ordered_json receipt = make_receipt(scoring, request, run, records, folder, machine);
  write_file_atomic(folder / "score.json", receipt.at("score").dump(2) + "\n");
  write_receipt(folder / "receipt.json", receipt);
}

std::vector<std::string> other_than_told(const ordered_json& receipt, const Scoring& scoring, const ScoreRequest& request) {
  const Identities told = receipt_identities(receipt, "the receipt"), here = identities_of(scoring, request);
  std::vector<std::string> wrong;
  for (const Identities::Trait& trait : here.traits)
    if (!told.tells(trait.kind)) wrong.push_back(fmt::format("it does not tell its {}", name_of(trait.kind)));
  for (const IdentityDifference& one : differences(told, here))
    wrong.push_back(fmt::format("{}: {} in the receipt, {} here", name_of(one.kind), one.have, one.other));
  return wrong;
}

void require_receipt_of(const ordered_json& receipt, const std::string& path, const Scoring& scoring,
                        const ScoreRequest& request) {
  for (const auto& wrong : {wrong_numbers(receipt), other_than_told(receipt, scoring, request)})
    if (!wrong.empty()) throw InputError(path + ": is not a receipt of this score: " + wrong.front());
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

void add_tests(ordered_json& receipt, const AuditReport& report, int64_t tokens, const ordered_json& machine) {
  receipt["audit"] = {{"legal", report.legal()}, {"tokens", tokens}, {"machine", machine}, {"tests", tests_json(report)}};
}

ScoreRequest recorded_request(const ordered_json& receipt, const std::string& from, const std::string& data) {
  const ordered_json& settings = receipt.at("settings");
  ScoreRequest request{.from = from, .data = data};
  request.mode = parse_mode(settings.at("mode"));
  request.context = settings.at("context");
  request.stride = settings.at("stride");
  request.tokens = settings.at("tokens");
  request.documents = settings.at("documents");
  request.all_targets = settings.at("all_targets");
  request.overrides = settings.at("set").get<std::vector<std::string>>();
  if (settings.contains("recipe")) request.recipe = settings.at("recipe");
  return request;
}

void write_receipt(const fs::path& path, ordered_json receipt) {
  receipt[kSeal] = seal_of(receipt);
  write_file_atomic(path, receipt.dump(2) + "\n");
}

ordered_json read_receipt(const fs::path& path) {
  constexpr uint64_t kMostBytes = 1 << 24;
  ordered_json receipt = parse_json_or_discard<ordered_json>(read_file(path, kMostBytes), path.string());
  if (!receipt.is_object() || !receipt.contains("receipt") || !receipt.contains(kSeal))
    throw InputError(path.string() + ": not a receipt; expected a file that `fairway score --out` writes");
  if (receipt.at("receipt") != kReceiptVersion)
    throw InputError(fmt::format("{}: a receipt of version {}, expected {}; score again with this program", path.string(),
                                 receipt.at("receipt").dump(), kReceiptVersion));
  if (receipt.at(kSeal) != seal_of(receipt)) throw InputError(path.string() + ": was changed after it was written");
  return receipt;
}

}  // namespace fairway::app
