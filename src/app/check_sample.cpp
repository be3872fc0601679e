#include "app/check_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "app/receipt_file.h"
#include "base/error.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kOtherBackend = 0.01;  // nats per target between two backends

// The longest beginning that is foreseen to fit, or the shortest.
const ordered_json& choose(const ordered_json& beginnings, Evaluator& evaluator, double seconds) {
  const ordered_json* chosen = &beginnings.at(0);
  for (const ordered_json& beginning : beginnings)
    if (evaluator.estimate(beginning.at("targets")) <= seconds) chosen = &beginning;
  return *chosen;
}

class Sample {
 public:
  Sample(ordered_json receipt, const fs::path& artifact, const std::string& data, const std::string& tokenizer)
      : receipt_(std::move(receipt)),
        name_(artifact.filename().string()),
        request_(recorded_request(receipt_, artifact.string(), data)) {
    request_.tokenizer = tokenizer;
    opened_ = open_scoring(request_);
  }

  void run(double seconds, const CommonFlags& common, SampleCheck& out) const {
    const Scoring& scoring = *opened_;
    for (const std::string& sentence : other_than_told(receipt_, scoring, request_))
      out.problems.push_back(name_ + ": " + sentence);
    if (!out.problems.empty()) return;
    Machine machine(common);
    ScoreSettings settings = scoring.settings;
    if (settings.schedule_targets == 0) settings.schedule_targets = static_cast<int64_t>(scoring.stream.size()) - 1;
    const auto evaluator = make_evaluator(scoring.model(), settings, {machine.executor.get(), &machine.queue.pool()});
    const ordered_json& told = choose(receipt_.at("records").at("beginnings"), *evaluator, seconds);
    const auto targets = told.at("targets").get<int64_t>();
    const auto stream = std::span(scoring.stream).first(static_cast<size_t>(targets) + 1);
    const ScoredRun run = score_stream(scoring, settings, stream, machine, common.quiet);
    out.targets += targets;
    const double loss = told.at("nats").get<double>() / static_cast<double>(targets);
    const bool same_backend = receipt_.at("machine").at("backend") == common.backend;
    const bool same = same_backend ? records_hash(run.ledger) == told.at("sha256").get<std::string>()
                                   : std::abs(run.score.loss() - loss) <= kOtherBackend;
    if (!same)
      out.problems.push_back(
          fmt::format("{}: its first {} targets, scored again{}, cost {:.6f} nats each; the receipt's records say {:.6f}",
                      name_, targets, same_backend ? "" : " on another backend", run.score.loss(), loss));
  }

 private:
  ordered_json receipt_;
  std::string name_;
  ScoreRequest request_;
  std::unique_ptr<Scoring> opened_;
};

}  // namespace

SampleCheck check_samples(const SampleRequest& request, const CommonFlags& common) {
  const fs::path& folder = request.folder;
  SampleCheck out;
  std::vector<fs::path> receipts;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("receipt_seed")) receipts.push_back(entry.path());
  std::sort(receipts.begin(), receipts.end());
  for (const fs::path& path : receipts) {
    constexpr size_t kBefore = std::string_view("receipt_").size();
    const fs::path artifact = folder / ("model_" + path.stem().string().substr(kBefore) + ".fwy");
    if (!fs::is_regular_file(artifact)) {
      out.problems.push_back(artifact.filename().string() + ": is missing, so that none of its windows can be scored");
      continue;
    }
    try {
      Sample(read_receipt(path), artifact, request.data, request.tokenizer).run(request.seconds, common, out);
    } catch (const InputError& error) {
      out.problems.push_back(path.filename().string() + ": " + error.what());
    } catch (const nlohmann::json::exception& error) {
      out.problems.push_back(path.filename().string() + ": a field is missing or has the wrong type (" + error.what() + ")");
    }
  }
  return out;
}

}  // namespace fairway::app
