#include "submission/rules.h"

#include <fmt/core.h>

#include <map>
#include <sstream>

#include "analysis/receipt_identity.h"
#include "analysis/receipt_numbers.h"
#include "base/sha256.h"
#include "recipe/score_mode.h"

namespace fairway::submission {
namespace {

using nlohmann::ordered_json;
using Sentences = std::vector<std::string>;

std::string text_at(const ordered_json& record, std::initializer_list<const char*> path) {
  const ordered_json* at = &record;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

// The key of the first line in which two recipes differ, seeds aside.
std::string first_difference(Recipe a, Recipe b) {
  a.train.seed = b.train.seed = 0;
  std::istringstream left(to_toml(a)), right(to_toml(b));
  std::string x, y, table;
  while (std::getline(left, x) && std::getline(right, y) && x == y) {
    if (x.starts_with('[')) table = x + " ";
  }
  return fmt::format("{}{} and {}", table, x, y);
}

void check_seeds(std::span<const RunFacts> runs, Sentences& out) {
  if (runs.size() < kLeastSeeds)
    out.push_back(fmt::format("{} run{} given; a submission needs at least {} with different seeds", runs.size(),
                              runs.size() == 1 ? " was" : "s were", kLeastSeeds));
  std::map<int64_t, std::string> seen;
  for (const RunFacts& run : runs) {
    const auto [found, fresh] = seen.emplace(run.seed(), run.folder.string());
    if (!fresh) out.push_back(fmt::format("{} and {} have the same seed {}", found->second, run.folder.string(), run.seed()));
  }
}

void check_same_system(std::span<const RunFacts> runs, Sentences& out) {
  const RunFacts& first = runs.front();
  for (const RunFacts& run : runs.subspan(1)) {
    Recipe mine = run.recipe, theirs = first.recipe;
    mine.train.seed = theirs.train.seed;
    if (mine != theirs)
      out.push_back(fmt::format("{} and {} have different recipes: {}", first.folder.string(), run.folder.string(),
                                first_difference(first.recipe, run.recipe)));
    if (run.backend != first.backend || run.ranks != first.ranks)
      out.push_back(fmt::format("{} was trained by {} ranks on {}, {} by {} on {}; one run.sh starts all of them",
                                run.folder.string(), run.ranks, run.backend, first.folder.string(), first.ranks,
                                first.backend));
    for (const IdentityDifference& one :
         differences(receipt_identities(run.receipt, ""), receipt_identities(first.receipt, "")))
      if (one.kind != IdentityKind::artifact && one.kind != IdentityKind::recipe)  // these differ with the seed
        out.push_back(
            fmt::format("{} and {} were not scored alike: {}", run.folder.string(), first.folder.string(), one.text()));
  }
}

void check_launch(const RunFacts& run, Sentences& out) {
  if (run.backend.empty() || run.ranks < 1)
    out.push_back(fmt::format("{}: does not tell the backend and the ranks of its training; train again with this program",
                              (run.folder / "machine.json").string()));
}

void check_budgets(const RunFacts& run, const Code& code, Sentences& out) {
  const std::string name = run.folder.string();
  if (!run.forked_from.empty())
    out.push_back(fmt::format("{}: began with the weights of {}, whose training its log does not tell; train from a seed", name,
                              run.forked_from));
  if (const uint64_t total = run.artifact_bytes + code.bytes; total > kMostBytes)
    out.push_back(fmt::format("{}: {} bytes of artifact and {} of code are {}, over the limit of {}", name, run.artifact_bytes,
                              code.bytes, total, kMostBytes));
  if (const double seconds = run.train_seconds + run.counted_calibration; !(seconds <= kMostSeconds))
    out.push_back(fmt::format("{}: trained for {:.3f} s{}, over the limit of {} s; leave some in train.reserve_seconds", name,
                              seconds, run.counted_calibration > 0 ? " with its calibration" : "", kMostSeconds));
  if (const double seconds = run.number("seconds"); !(seconds <= kMostSeconds))
    out.push_back(fmt::format("{}: scored for {:.1f} s, over the limit of {} s", name, seconds, kMostSeconds));
}

void check_audit(const RunFacts& run, Sentences& out) {
  const std::string name = (run.folder / "receipt.json").string();
  if (!run.receipt.contains("audit")) {
    out.push_back(name + ": has no audit; run `fairway audit --receipt` on it");
    return;
  }
  const ordered_json& audit = run.receipt["audit"];
  for (const ordered_json& test : audit.value("tests", ordered_json::array())) {
    if (!test.value("held", false))
      out.push_back(fmt::format("{}: the audit's test {} failed: {}", name, text_at(test, {"id"}), text_at(test, {"detail"})));
  }
  if (!audit.value("legal", false)) out.push_back(name + ": the audit did not find the score legal");
}

// A receipt's seal can be made anew by anybody; its numbers must be the sums of the records.
void check_numbers(const RunFacts& run, Sentences& out) {
  const std::string name = (run.folder / "receipt.json").string();
  try {
    for (const std::string& sentence : wrong_numbers(run.receipt)) out.push_back(name + ": " + sentence);
    const ordered_json& told = run.receipt.at("records");
    if (told.at("file").at("sha256") != run.records.file.sha256 || told.at("targets") != run.records.targets ||
        blocks_of(run.receipt).nats != run.records.nats)
      out.push_back(fmt::format("{}: its sums are not those of {}", name, run.records.file.path.string()));
  } catch (const nlohmann::json::exception& error) {
    out.push_back(fmt::format("{}: a field of its score or records is missing ({}); score again", name, error.what()));
  }
}

void check_receipt(const RunFacts& run, const Code& code, Sentences& out) {
  const std::string name = (run.folder / "receipt.json").string();
  ordered_json bare = run.receipt;
  bare.erase("sha256");
  if (text_at(run.receipt, {"sha256"}) != sha256_hex(bare.dump())) {
    out.push_back(name + ": was changed after it was written");
    return;
  }
  const Identities scored = receipt_identities(run.receipt, name);
  Identities packed;
  packed.tell(IdentityKind::artifact, {run.artifact_sha256});
  if (!scored.tells(IdentityKind::artifact) || !differences(scored, packed).empty())
    out.push_back(fmt::format("{}: is stale: model.fwy is not the artifact that was scored", name));
  check_numbers(run, out);
  for (const char* key : {"mode", "val_bpb", "val_loss", "tokens", "bytes"}) {
    if (text_at(run.receipt, {"score", key}) != text_at(run.score, {key}))
      out.push_back(fmt::format("{}: is stale: its {} is {}, score.json says {}", name, key,
                                text_at(run.receipt, {"score", key}), text_at(run.score, {key})));
  }
  if (text_at(run.receipt, {"program", "sha256"}) != code.program)
    out.push_back(name +
                  ": was made by another program than this one, whose sources the submission ships; score and audit again");
  if (text_at(run.receipt, {"settings", "tokens"}) != "0")
    out.push_back(fmt::format("{}: scored only the first {} tokens, not all of the validation data", name,
                              text_at(run.receipt, {"settings", "tokens"})));
  if (text_at(run.receipt, {"legal"}) != "true" || text_at(run.score, {"legal"}) != "true")
    out.push_back(fmt::format("{}: mode {} breaks the rules of scoring", name, text_at(run.score, {"mode"})));
  else if (const auto mode = scoring_mode(text_at(run.score, {"mode"})); mode && mode->base == ScoreMode::slot)
    out.push_back(fmt::format("{}: mode {} is not in the sources that a submission ships", name, name_of(*mode)));
  if (const std::string shared = text_at(run.receipt, {"data", "shared_documents"}); shared != "0")
    out.push_back(fmt::format("{}: how many documents training and validation text share must be known and 0; it is {}", name,
                              shared.empty() || shared == "null" ? "not known" : shared));
  check_audit(run, out);
}

void check_log(const RunFacts& run, const Code& code, Sentences& out) {
  const std::string name = (run.folder / "train.log").string();
  const auto expect = [&](const std::string& line, const std::string& what) {
    if (run.log.find(line) == std::string::npos) out.push_back(fmt::format("{}: does not give {} (\"{}\")", name, what, line));
  };
  expect(fmt::format("seed:{}\n", run.seed()), "the recipe's seed");
  expect("recipe:" + recipe_hash(run.recipe), "the hash of recipe.toml");
  expect(fmt::format("step:{}", run.steps), "the last step");
  if (const std::string counted = text_at(run.pack, {"code_bytes"}); counted != fmt::format("{}", code.bytes))
    out.push_back(fmt::format("{}: packed when the code had {} bytes, now it has {}; pack, score and audit again",
                              run.folder.string(), counted, code.bytes));
  if (run.pack.at("artifact_bytes").get<uint64_t>() != run.artifact_bytes)
    out.push_back(fmt::format("{}: model.fwy has {} bytes, but pack.json and the log say {}", run.folder.string(),
                              run.artifact_bytes, run.pack.at("artifact_bytes").dump()));
}

}  // namespace

Sentences broken_rules(std::span<const RunFacts> runs, const Code& code) {
  Sentences out;
  check_seeds(runs, out);
  if (runs.empty()) return out;
  check_same_system(runs, out);
  for (const RunFacts& run : runs) {
    check_launch(run, out);
    check_budgets(run, code, out);
    check_receipt(run, code, out);
    check_log(run, code, out);
  }
  return out;
}

}  // namespace fairway::submission
