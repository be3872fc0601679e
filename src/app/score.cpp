// `fairway score`: bits per byte of an artifact, a run's weights or a weight file, in any mode.
#include <fmt/core.h>

#include "app/machine_facts.h"
#include "app/named_inputs.h"
#include "app/receipt_file.h"
#include "app/run_memory.h"
#include "app/score_forecast.h"
#include "app/score_text.h"
#include "app/scoring_flags.h"
#include "app/stages.h"
#include "base/disk.h"
#include "base/error.h"
#include "base/file.h"
#include "base/writer_lock.h"
#include "stages/ranks.h"

namespace fairway::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ScoreFlags {
  std::shared_ptr<ScoreRequest> request = std::make_shared<ScoreRequest>();
  std::string out;
  double seconds = 0;
  bool ladder = false;
  ScoreTextFlags text;
};

double needed_by(const Scoring& scoring, const ScoreSettings& settings, Machine& machine, Communicator& comm) {
  return seconds_needed(scoring.model(), settings, static_cast<int64_t>(scoring.stream.size()) - 1, machine, comm);
}

// Refuses what cannot fit before any token of the stream is scored.
void require_time(const Scoring& scoring, double budget, Machine& machine, Communicator& comm) {
  if (budget <= 0) return;
  const double needed = needed_by(scoring, scoring.settings, machine, comm);
  if (needed <= budget) return;
  throw InputError(fmt::format("--seconds {:g}: {} of {} tokens would take about {:.3g} s on this machine", budget,
                               name_of(scoring.settings.score.mode), scoring.stream.size() - 1, needed));
}

fs::path folder_for(const std::string& out) {
  if (const std::error_code error = disk::make_folders(out))
    throw InputError("--out " + out + ": cannot be created (" + error.message() + ")");
  return out;
}

// Of the receipt too, which an audit changes.
std::vector<WriterLock> lock_results(const std::string& folder, const Communicator& comm) {
  std::vector<WriterLock> locks;
  if (!comm.root() || folder.empty()) return locks;
  locks.push_back(WriterLock::of_folder(folder_for(folder)));
  locks.push_back(WriterLock::of_file(fs::path(folder) / "receipt.json"));
  return locks;
}

// What each addition brings: every mode that keeps the rules, alone and with what can be added to it.
std::vector<ScoringMode> ladder() {
  std::vector<ScoringMode> rungs;
  for (const std::string& name : scoring_modes())
    if (const auto mode = scoring_mode(name); mode && keeps_rules(mode->base)) rungs.push_back(*mode);
  return rungs;
}

// Each rung from a fresh load, with what it gains over plain and what it costs; one that does not fit the time is named as
// such.
int run_ladder(const CommonFlags& common, const ScoreFlags& flags, Communicator& comm) {
  const std::unique_ptr<Scoring> opened = open_scoring(*flags.request);
  const Scoring& scoring = *opened;
  const std::vector<WriterLock> locks = lock_results(flags.out, comm);
  Machine machine(common);
  ordered_json rungs = ordered_json::array();
  std::string text =
      fmt::format("{:<20}{:>12}{:>12}{:>12}{:>10}\n", "mode", "nats/token", "bits/byte", "over plain", "seconds");
  double plain = 0, left = flags.seconds;
  for (const ScoringMode& mode : ladder()) {
    ScoreSettings settings = scoring.settings;
    settings.score.mode = mode;
    const double needed = flags.seconds > 0 ? needed_by(scoring, settings, machine, comm) : 0;
    if (needed > left) {
      rungs.push_back({{"mode", name_of(mode)}, {"refused_seconds", needed}});
      text += fmt::format("{:<20}  would take about {:.3g} s of {:.3g} s left\n", name_of(mode), needed, left);
      continue;
    }
    ScoredRun run = score_stream(scoring, settings, scoring.stream, machine, common.quiet, comm);
    Score& score = run.score;
    comm.broadcast(make_view(&score.seconds, {{1}, DType::f64}));
    if (!comm.root()) {
      if (flags.seconds > 0) left -= score.seconds;
      continue;
    }
    if (mode == ScoringMode{ScoreMode::plain}) plain = score.bits_per_byte();
    if (flags.seconds > 0) left -= score.seconds;
    rungs.push_back(score_json(scoring, settings, run));
    text += fmt::format("{:<20}{:>12.4f}{:>12.4f}{:>+12.4f}{:>10.1f}\n", name_of(mode), score.loss(), score.bits_per_byte(),
                        score.bits_per_byte() - plain, score.seconds);
  }
  if (!comm.root()) return 0;
  if (!flags.out.empty())
    write_file_atomic(fs::path(flags.out) / "ladder.json", ordered_json{{"ladder", rungs}}.dump(2) + "\n");
  tell_notes(scoring.held_out.notes, common.quiet);
  print_result(common, {{"ladder", rungs}}, text);
  return 0;
}

int run_text(const CommonFlags& common, const ScoreFlags& flags, Communicator& comm) {
  for (const auto& [given, name] : {std::pair{flags.ladder, "--ladder"},
                                    {!flags.out.empty(), "--out"},
                                    {flags.seconds > 0, "--seconds"},
                                    {flags.request->tokens > 0, "--tokens"}})
    if (given) throw InputError(fmt::format("{}: is for validation shards, not for --text", name));
  if (comm.size() > 1 && flags.text.text == "-")
    throw InputError(fmt::format("--text -: standard input reaches one of the {} ranks only; give a file", comm.size()));
  return run_score_text(common, *flags.request, flags.text, comm);
}

int run_score(CommonFlags common, const ScoreFlags& flags) {
  Communicator& comm = meet_ranks(common);  // first: what one rank alone is refused must end all
  require_model(flags.request->from);
  remember_scoring(*flags.request);
  if (flags.text.text.empty()) {
    flags.request->data = data_for(flags.request->from, flags.request->data);
    flags.request->tokenizer = named_tokenizer(flags.request->from, flags.request->tokenizer);
  }
  if (!flags.text.text.empty()) return run_text(common, flags, comm);
  if (flags.ladder) return run_ladder(common, flags, comm);
  const pipeline::Outcome outcome = do_score(*flags.request, flags.out, flags.seconds, common, comm);
  if (comm.root()) print_result(common, outcome.result, outcome.text);
  return outcome.status;
}

}  // namespace

pipeline::Outcome do_score(const ScoreRequest& request, const std::string& keep, double most_seconds, const Compute& compute,
                           Communicator& comm) {
  const std::unique_ptr<Scoring> scoring = open_scoring(request);
  const std::vector<WriterLock> locks = lock_results(keep, comm);
  Machine machine(compute);
  require_time(*scoring, most_seconds, machine, comm);
  const ScoredRun run = score_stream(*scoring, scoring->settings, scoring->stream, machine, compute.quiet, comm);
  if (!comm.root()) return {};
  tell_notes(scoring->held_out.notes, compute.quiet);
  if (!keep.empty()) write_scored(keep, *scoring, request, run, launch_facts(compute, comm.size()));
  return {0, score_json(*scoring, scoring->settings, run), score_text(*scoring, scoring->settings, run.score)};
}

void add_score(CLI::App& program) {
  auto flags = std::make_shared<ScoreFlags>();
  CLI::App* command = add_command(
      program, "score", "bits per byte of an artifact or of weights on the validation shards, or of any text",
      [flags](const CommonFlags& common) { return run_score(common, *flags); }, Ranks::shared);
  add_scoring_flags(*command, flags->request, true);
  command->add_option("--text", flags->text.text, "score this text instead of shards: a file, or - for standard input");
  command->add_flag("--surprisal", flags->text.surprisal, "of --text: also the bits of every piece of it");
  command->add_option("--page", flags->text.page, "of --text: an HTML page with the text shaded by its bits");
  command->add_option("--seconds", flags->seconds, "refuse to start if scoring would take longer")
      ->check(number_between(0, 1e9));
  command->add_flag("--ladder", flags->ladder,
                    "score in every mode that keeps the rules, with and without tilt, and print what each costs");
  command->add_option("--out", flags->out, "folder for score.json, receipt.json and score.records, or for ladder.json");
}

}  // namespace fairway::app
