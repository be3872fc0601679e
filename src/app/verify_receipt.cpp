#include "app/verify_receipt.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "analysis/receipt_numbers.h"
#include "analysis/score_records.h"
#include "app/machine_facts.h"
#include "app/ssh_signature.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kSixDigits = 5e-7;  // relative, between two CPUs

// Where the receipt's folder has it, else where it was.
fs::path place_of(const ordered_json& listed, const fs::path& folder) {
  fs::path recorded = listed.at("path").get<std::string>();
  for (const fs::path& place : {folder / listed.value("relative", recorded.string()), folder / recorded.filename()})
    if (fs::exists(place)) return place.lexically_normal();
  return recorded;
}

class Verification {
 public:
  Verification(const ordered_json& receipt, const VerifyFlags& flags)
      : receipt_(receipt), flags_(flags), folder_(fs::absolute(flags.receipt).parent_path()) {}

  Verified run(const CommonFlags& common) {
    check_signature();
    for (std::string& sentence : wrong_numbers(receipt_)) wrong_.push_back(std::move(sentence));
    check_score_file();
    check_records();
    if (sha256_of_file("/proc/self/exe") != receipt_.at("program").at("sha256").get<std::string>())
      wrong_.emplace_back("this is not the program that scored");
    check_tests();
    if (!receipt_.at("legal").get<bool>()) wrong_.emplace_back("the mode breaks the rules (legal: false)");
    check_inputs();
    if (flags_.again && wrong_.empty()) score_again(common);
    return {std::move(wrong_), std::move(notes_)};
  }

 private:
  void check_signature() {
    if (flags_.signers.empty()) return;
    try {
      notes_.push_back("signed by " + signer_of(flags_.receipt, flags_.signers));
    } catch (const WorkError& error) {
      wrong_.emplace_back(error.what());
    }
  }

  // What other commands read of this score.
  void check_score_file() {
    const fs::path path = folder_ / "score.json";
    if (flags_.receipt.filename() != "receipt.json" || !fs::exists(path)) return;
    if (parse_json_or_discard<ordered_json>(read_file(path), path.string()) != receipt_.at("score"))
      wrong_.push_back(path.string() + " has a different score");
  }

  void check_records() {
    const ordered_json& listed = receipt_.at("records").at("file");
    const fs::path path = place_of(listed, folder_);
    if (!fs::exists(path)) {  // a submission leaves them out; scoring again makes them anew
      if (!flags_.again) wrong_.push_back("the records are missing (--again makes them again): " + path.string());
      return;
    }
    ScoreRecords records = read_score_records(path);
    if (records.file.sha256 != listed.at("sha256").get<std::string>())
      wrong_.push_back("the records have been changed: " + path.string());
    else if (records.nats != blocks_of(receipt_).nats || records.targets != receipt_.at("records").at("targets"))
      wrong_.push_back("its sums are not those of " + path.string());
    documents_ = std::move(records.documents);
  }

  // Every test of the audit must be on the receipt, and held.
  void check_tests() {
    if (!receipt_.contains("audit")) {
      wrong_.emplace_back("has no audit yet; add one with fairway audit --receipt");
      return;
    }
    const ordered_json& tests = receipt_.at("audit").at("tests");
    constexpr int kTests = 12;
    for (int number = 1; number <= kTests; ++number) {
      const std::string id = fmt::format("T{}", number);
      const auto test = std::find_if(tests.begin(), tests.end(), [&](const ordered_json& t) { return t.at("id") == id; });
      if (test == tests.end()) {
        wrong_.push_back(id + " of the audit was left out");
      } else if (!test->at("held").get<bool>()) {
        wrong_.push_back(id + " of the audit did not hold: " + test->at("detail").get<std::string>());
      }
    }
  }

  ScoreRequest score_request() const {
    const fs::path artifact = place_of(receipt_.at("artifact"), folder_);
    const bool run = receipt_.at("from") == "run";
    ScoreRequest request =
        recorded_request(receipt_, !flags_.from.empty() ? flags_.from : (run ? artifact.parent_path() : artifact).string(),
                         !flags_.data.empty() ? flags_.data : place_of(receipt_.at("data"), folder_).string());
    request.tokenizer = flags_.tokenizer;
    if (request.tokenizer.empty() && !fs::exists(fs::path(request.data) / "tokenizer.model"))
      request.tokenizer = place_of(receipt_.at("tokenizer"), folder_).string();
    return request;
  }

  // What was scored, opened as for scoring: the same bytes, and the bytes that its targets stand for.
  void check_inputs() {
    ScoreRequest request;
    try {
      request = score_request();
      for (const auto& [what, path] : {std::pair{"the artifact", request.from}, std::pair{"the data", request.data}}) {
        if (fs::exists(path)) continue;
        wrong_.push_back(fmt::format("{} is missing: {}", what, path));
        return;
      }
      scoring_ = open_scoring(request);
    } catch (const InputError& error) {
      wrong_.emplace_back(error.what());
      return;
    }
    for (std::string& sentence : other_than_told(receipt_, *scoring_, request)) wrong_.push_back(std::move(sentence));
    if (block_bytes(scoring_->stream, scoring_->held_out.target_bytes()) != blocks_of(receipt_).bytes)
      wrong_.emplace_back("its byte count does not match the data");
    const int64_t bos = scoring_->source.recipe.model.bos;
    if (!documents_.empty() && documents_ != document_sizes(scoring_->stream, scoring_->held_out.target_bytes(), bos))
      wrong_.emplace_back("the documents of its records are not those of the data");
  }

  void score_again(const CommonFlags& common) {
    Machine machine(common);
    const ScoredRun run = score_stream(*scoring_, scoring_->settings, scoring_->stream, machine, common.quiet);
    if (records_hash(run.ledger) == receipt_.at("records").at("sha256").get<std::string>()) {
      for (const std::string& sentence : wrong_score(receipt_.at("score"), run.blocks, run.score.tokens))
        wrong_.push_back("scored again: " + sentence);
      return;
    }
    const double told = receipt_.at("score").at("val_bpb"), now = run.score.bits_per_byte();
    const std::string elsewhere = other_machine(launch_facts(common, 1));
    if (!elsewhere.empty() && std::abs(now - told) <= kSixDigits * std::abs(told))
      notes_.push_back(fmt::format("equal to 6 digits on {}", elsewhere));
    else
      wrong_.push_back(fmt::format("scored again{}, the records differ: {:.6f} bits per byte now, {:.6f} then",
                                   elsewhere.empty() ? "" : " on " + elsewhere, now, told));
  }

  // "another CPU (avx2 here, avx512 there)"; empty where backend, instructions, device and its kernels are the receipt's. Sums
  // of products go in another order there, so the last digits differ.
  std::string other_machine(const ordered_json& here) const {
    const ordered_json& there = receipt_.at("machine");
    const bool backend = here.value("backend", "") != there.value("backend", "");
    for (const char* key : {"backend", "isa", "device"}) {
      const std::string is = here.value(key, ""), was = there.value(key, "");
      if (is != was)
        return fmt::format("another {} ({} here, {} there)",
                           backend                ? "backend"
                           : here.contains("isa") ? "CPU"
                                                  : "device",
                           is, was);
    }
    const std::string is = here.value("path", ""), was = there.value("path", "");  // older receipts do not tell
    return is == was || was.empty() ? "" : fmt::format("other kernels ({} here, {} there)", is, was);
  }

  const ordered_json& receipt_;
  const VerifyFlags& flags_;
  fs::path folder_;
  std::unique_ptr<Scoring> scoring_;
  std::vector<DocumentSize> documents_;  // as the records tell them; empty where there are none
  std::vector<std::string> wrong_, notes_;
};

}  // namespace

Verified verify_receipt(const VerifyFlags& flags, const CommonFlags& common) {
  const ordered_json receipt = read_receipt(flags.receipt);
  return Verification(receipt, flags).run(common);
}

}  // namespace fairway::app
