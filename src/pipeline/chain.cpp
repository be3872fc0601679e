#include "pipeline/chain.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/progress_line.h"
#include "pipeline/ledger.h"
#include "pipeline/phases.h"
#include "stages/train_stage.h"

namespace fairway::pipeline {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void require_free(const ChainRequest& request) {
  if (!request.resume && holds_run(request.out))
    throw InputError("--out " + request.out + ": already holds a run; add --resume to continue it, or choose another folder");
}

// What is still to come, from this phase on, as far as it is known beforehand.
std::string time_left(const std::vector<Phase>& phases, size_t from) {
  double left = 0;
  bool all = true;
  for (size_t i = from; i < phases.size(); ++i) {
    if (phases[i].expected_seconds >= 0)
      left += phases[i].expected_seconds;
    else
      all = false;
  }
  if (left <= 0) return "";
  return fmt::format("  ({} {} left)", all ? "about" : "more than", duration_text(left));
}

// For those who watch the run: what it will do, and the seconds that are known beforehand.
ordered_json plan_json(const std::vector<Phase>& phases, const ChainRequest& request) {
  ordered_json names = ordered_json::array();
  for (const Phase& phase : phases) {
    names.push_back({{"name", phase.name}});
    if (phase.expected_seconds >= 0) names.back()["seconds"] = phase.expected_seconds;
  }
  ordered_json out{{"phases", names}};
  if (request.packing.budget > 0) out["budget_bytes"] = request.packing.budget;
  if (request.packing.as_published) out["as_published"] = true;
  return out;
}

Outcome do_phase(const Phase& phase, const fs::path& folder) {
  Outcome outcome = phase.run();
  if (outcome.status != kInterrupted && !phase.save_as.empty())
    write_file_atomic(folder / phase.save_as,
                      outcome.result.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  return outcome;
}

// The part of a process that is not the first: it does what all share, when the first says that it is due.
int help_along(const std::vector<Phase>& phases, const ChainRequest& request) {
  for (const Phase& phase : phases) {
    if (request.agree(false) || !phase.shared) continue;
    if (const int status = phase.run().status; status != 0) return status;
  }
  return 0;
}

}  // namespace

ChainResult run_chain(const ChainRequest& request, const Stages& stages, const Say& say) {
  const Recipe recipe = load_recipe(request.recipe, request.overrides);
  const std::vector<Phase> phases = plan_phases(request, recipe, stages);
  if (request.helper_rank) return {help_along(phases, request), nullptr};
  Ledger ledger(request.out, "run");
  require_free(request);
  ledger.content()["recipe"] = recipe_hash(recipe);
  ledger.content()["data"] = fs::absolute(request.data).lexically_normal().string();
  ledger.content()["plan"] = plan_json(phases, request);
  ordered_json& done = ledger.content()["phases"];  // the last key: another one would move it
  if (!done.is_object() || !holds_run(request.out)) done = ordered_json::object();
  ledger.save();
  int status = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (phase.before) phase.before();
    if (request.agree(complete(phase, request.out, done.value(phase.name, ordered_json())))) {
      say(fmt::format("[{}/{}] {}: done before", i + 1, phases.size(), phase.name));
    } else {
      say(fmt::format("[{}/{}] {}{}", i + 1, phases.size(), phase.name, time_left(phases, i)));
      const Stopwatch watch;
      const std::string mark = mark_of(phase, request.out);
      const Outcome outcome = do_phase(phase, request.out);
      if (outcome.status == kInterrupted) return {kInterrupted, chain_summary(ledger.content(), recipe)};
      if (outcome.status != 0 && !phase.gives_verdict)
        throw WorkError(fmt::format("{}: status {}", phase.name, outcome.status));
      done[phase.name] = record_of(phase, request.out, mark, outcome, watch.seconds());
      ledger.save();
    }
    status = std::max(status, done[phase.name].value("status", 0));
  }
  ordered_json summary = chain_summary(ledger.content(), recipe);
  summary["path"] = request.out;
  return {status, summary};
}

}  // namespace fairway::pipeline
