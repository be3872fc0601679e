#include "train/loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <new>

#include "base/clock.h"
#include "base/device_error.h"
#include "base/signals.h"
#include "optim/schedule.h"
#include "train/averaged_weights.h"
#include "train/profile.h"
#include "train/share_run.h"
#include "train/teller.h"

namespace fairway {
namespace {

std::string hash_but_length(Recipe recipe) {
  recipe.train.steps = 0;
  recipe.train.seconds = 0;
  return recipe_hash(recipe);
}

class Loop {
 public:
  Loop(const Recipe& recipe, Trainer& trainer, data::Loader& loader, RunFolder& folder, const TrainOptions& options)
      : recipe_(recipe),
        trainer_(trainer),
        loader_(loader),
        folder_(folder),
        options_(options),
        comm_(trainer.comm()),
        teller_(recipe, folder, options.quiet || !comm_.root()),
        run_{recipe_hash(recipe), hash_but_length(recipe), options.tokenizer, options.tokenizer_told_by},
        profile_(options.profile) {
    progress_.clock = schedule_clock(recipe);
    progress_.total_steps = recipe.train.steps;
    progress_.budget = recipe.train.seconds - recipe.train.reserve_seconds;
    // Ranks agree on the time of finished steps only, and a timeline shows steps one by one.
    const bool alone = trainer.executor().on_device() && comm_.size() == 1 && options.profile.empty();
    behind_ = static_cast<size_t>(options.behind >= 0 ? options.behind : alone ? 1 : 0);
  }

  TrainSummary run(ThreadPool& pool);

 private:
  TrainSummary whole_run(ThreadPool& pool);
  TrainSummary steps_to_the_end();
  bool trained_and_saved();
  bool by_steps() const { return progress_.clock == ScheduleClock::steps; }
  void begin(ThreadPool& pool);
  void require_longer() const;
  void keep_free();
  void one_step();
  Progress ahead() const;
  bool may_be_the_end() const;
  void switch_stages(double scale, const Progress& now);
  void await_oldest();
  void tell_oldest();
  void settle();
  void checkpoint();
  void checkpoint_inside();
  bool measures_checkpoints() const;
  void save_before_the_end();
  void require_recorded() const;
  std::string kept() const;
  bool checkpoint_due() const;
  Verdict verdict(bool stop);
  bool validation_due() const;
  void note_peak() {
    if (options_.measure_peak) teller_.peak(options_.measure_peak() * comm_.size());
  }
  void validate_now(bool final);
  TrainSummary summary() const;

  const Recipe& recipe_;
  Trainer& trainer_;
  data::Loader& loader_;
  RunFolder& folder_;
  const TrainOptions& options_;
  Communicator& comm_;
  Teller teller_;
  RunIdentity run_;
  Profile profile_;
  Progress progress_;
  ModelStage stage_;
  std::deque<StepRecord> pending_;  // steps begun whose results were not read, at most behind_ between steps
  size_t behind_ = 0;
  double mark_ = 0;                // until when time was counted
  double longest_checkpoint_ = 0;  // seconds
  double last_loss_ = 0, saved_at_ = 0, startup_ = 0;
  int64_t saved_step_ = -1;
  double saved_elapsed_ = 0;  // as the newest checkpoint tells it, without its own time
  std::optional<Validation> validation_;
  bool interrupted_ = false;
  bool averages_snapshots_ = false;
};

void Loop::begin(ThreadPool& pool) {
  trainer_.initialize(options_.seed, pool);
  if (options_.start != nullptr) {
    trainer_.params().set_values(options_.start->flat_values());
    trainer_.begin_averages();
  }
  if (comm_.root()) folder_.require_space(3 * checkpoint_bytes(trainer_) + trainer_.params().flat_values().spec.bytes());
  double recorded = 0;
  bool resumed = false;
  if (options_.resume) {
    if (const auto state = load_on_all(folder_.checkpoints(), trainer_, run_)) {
      progress_.step = saved_step_ = state->step;
      stage_ = state->stage;
      loader_.restore(state->loader);
      recorded = folder_.cut_back(state->step, state->unwritten);
      if (!state->unwritten.empty()) saved_step_ = -1;  // once they are in their files, no checkpoint needs them
      progress_.elapsed = state->elapsed > 0 ? state->elapsed : recorded;
      progress_.next_step = state->next_step;
      progress_.elapsed = saved_elapsed_ = agree(comm_, {.elapsed = progress_.elapsed}).elapsed;
      teller_.say(fmt::format("resuming after step {}", state->step));
      resumed = true;
      require_longer();
    } else {
      folder_.cut_back(-1);  // before the first checkpoint: everything is told anew
    }
  }
  folder_.open_records();
  if (!folder_.extension().empty()) teller_.extended(folder_.extension());
  if (!resumed) teller_.settings(run_.recipe, options_.seed);
  if (!resumed && !options_.note.empty()) teller_.planned(options_.note);
  averages_snapshots_ = trainer_.averager().snapshots() > 0;
  keep_free();
  require_recorded();
  note_peak();
  if (measures_checkpoints()) checkpoint();
  startup_ = options_.clock() - options_.started;
  saved_at_ = options_.clock();
}

// More than the run had is not always more than it took: a clock may be put in the place of steps.
void Loop::require_longer() const {
  if (folder_.extension().empty() || !progress_.finished()) return;
  throw InputError(fmt::format("{}: the run has made {} steps in {:.3g} s already; give more of them than that",
                               folder_.path().string(), progress_.step, progress_.elapsed));
}

void Loop::keep_free() {
  if (by_steps() || !options_.counted_after) return;
  const double after = agree(comm_, {.elapsed = options_.counted_after()}).elapsed;
  if (after <= recipe_.train.reserve_seconds) return;
  progress_.budget = recipe_.train.seconds - after;
  if (progress_.budget <= 0)
    throw InputError(
        fmt::format("train.seconds = {}: calibration on training data counts and takes {:.1f} s of them as "
                    "measured, which leaves no time to train; give more seconds or quant.calibration = \"self\"",
                    recipe_.train.seconds, after));
  teller_.keeps_free(after);
}

// What no further step can mend ends the run; its checkpoints stay.
TrainSummary Loop::run(ThreadPool& pool) {
  try {
    return whole_run(pool);
  } catch (const DeviceError& error) {
    throw WorkError(fmt::format("after step {}: {}; {}; go on with --resume", progress_.step, error.what(), kept()));
  } catch (const std::bad_alloc&) {
    throw WorkError(
        fmt::format("after step {}: out of memory; {}; go on with --resume where there is more, or begin with a smaller "
                    "train.micro_batch_tokens",
                    progress_.step, kept()));
  }
}

TrainSummary Loop::whole_run(ThreadPool& pool) {
  begin(pool);
  const TrainSummary summary = steps_to_the_end();
  const std::string table =
      profile_.write(comm_, trainer_.executor(), trainer_.session(stage_), teller_.peak() * 1e9 / comm_.size());
  if (!table.empty()) teller_.say(table);
  return summary;
}

TrainSummary Loop::steps_to_the_end() {
  interrupted_ = !trained_and_saved();
  if (interrupted_) {
    teller_.say(fmt::format("interrupted: saved after step {}; continue with --resume", progress_.step));
    return summary();
  }
  if (options_.validate) validate_now(true);
  folder_.sync();
  require_recorded();
  return summary();
}

// False where a signal ended it; what was trained is saved either way. Signals end the process again once this is done, because
// the last validation, which may take long, has nothing to save.
bool Loop::trained_and_saved() {
  const StopSignals signals;
  mark_ = options_.clock();
  if (options_.resume && validation_due()) validate_now(false);  // it follows the checkpoint, so its record was cut
  for (;;) {
    if (may_be_the_end()) {
      settle();
      if (progress_.finished()) break;  // not if the last steps took less time than it seemed
    }
    one_step();
    const Verdict now = verdict(signals.requested() || !folder_.trouble().empty());
    if (now.stop) {
      save_before_the_end();
      return false;
    }
    if (now.checkpoint) checkpoint_inside();
    if (validation_due()) validate_now(false);
  }
  if (!by_steps()) teller_.stopped_by_clock(progress_);
  teller_.averaged(trainer_.averager().result_name());
  if (options_.memory_bytes) teller_.memory(options_.memory_bytes());
  if (saved_step_ != progress_.step || (!by_steps() && saved_elapsed_ != progress_.elapsed)) checkpoint();
  trainer_.fetch_state();
  if (comm_.root()) save_averaged(folder_.path() / "averaged.safetensors", trainer_, stage_, progress_.step, run_);
  folder_.sync();  // what follows a run may count on its records
  require_recorded();
  return !verdict(signals.requested()).stop;
}

std::string Loop::kept() const {
  return saved_step_ >= 0 ? fmt::format("the checkpoint after step {} is kept", saved_step_) : "no checkpoint was made yet";
}

// A disk that takes no records may take no checkpoint either.
void Loop::save_before_the_end() {
  try {
    checkpoint();
  } catch (const std::exception& error) {
    if (folder_.trouble().empty()) throw;
    throw WorkError(fmt::format("{}; training ended, and a checkpoint cannot be written either ({}); {}", folder_.trouble(),
                                error.what(), kept()));
  }
  require_recorded();
}

void Loop::require_recorded() const {
  if (folder_.trouble().empty()) return;
  throw WorkError(
      fmt::format("{}; training ended; {}; continue with --resume once it can be written", folder_.trouble(), kept()));
}

// Where the run will stand once the pending steps are done, each as long as the last ones were.
Progress Loop::ahead() const {
  Progress now = progress_;
  now.elapsed += teller_.step_seconds() * static_cast<double>(pending_.size());
  return now;
}

// Pending steps may each take as long as the next one may.
bool Loop::may_be_the_end() const {
  Progress now = progress_;
  now.elapsed += progress_.next_step * static_cast<double>(pending_.size());
  return now.finished();
}

// One-way switches; the programs of all stages exist since start-up (spec §5.1, §11.3).
void Loop::switch_stages(double scale, const Progress& now) {
  if (!stage_.looped && loop_due(recipe_.model.loop, now)) {
    stage_.looped = true;
    settle();  // the log goes by steps
    teller_.looped(now);
  }
  if (recipe_.train.qat.enabled && !stage_.fake_quant && scale < recipe_.train.qat.lr_mul_below) {
    stage_.fake_quant = true;
    settle();
    teller_.fake_quant(progress_.step, scale);
  }
}

// Waits for the first pending step. Only steps with finite numbers are told or kept in a checkpoint.
void Loop::await_oldest() {
  const StepResult result = trainer_.finish_step();
  StepRecord& record = pending_.front();
  record.loss = result.loss;
  record.gradient_norm = result.gradient_norm;
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  throw WorkError(fmt::format(
      "step {}: the loss is {} and the gradient norm {}; {}. Lower the learning rates, or resume with another seed of data",
      record.step, result.loss, result.gradient_norm, kept()));
}

// Counts the time up to now as the first pending step's and tells its numbers.
void Loop::tell_oldest() {
  const double now = options_.clock(), seconds = now - mark_;
  const StepRecord record = pending_.front();
  pending_.pop_front();
  mark_ = now;
  progress_.took(seconds);
  last_loss_ = record.loss;
  teller_.step(record, progress_, seconds, loader_.waited_seconds(), progress_.finished() && pending_.empty());
}

void Loop::settle() {
  while (!pending_.empty()) {
    await_oldest();
    tell_oldest();
  }
}

void Loop::one_step() {
  profile_.before_step();
  const Progress now = ahead();
  const double scale = learning_rate_scale(recipe_.optim.schedule, now);
  switch_stages(scale, now);
  const StepNumbers numbers{scale, muon_momentum(recipe_.optim.matrix, progress_.step), progress_.step + 1};
  trainer_.begin_step(
      [&] {
        const data::Batch& batch = loader_.next();
        return MicroBatch{batch.tokens, batch.targets, batch.segment_start};
      },
      numbers, stage_);
  ++progress_.step;
  if (!averages_snapshots_ && trainer_.averager().snapshots() > 0) {
    averages_snapshots_ = true;
    teller_.averages_snapshots(progress_.step);
  }
  pending_.push_back({progress_.step, 0, 0, scale, numbers.momentum, stage_.looped, stage_.fake_quant});
  const bool due = pending_.size() > behind_;
  if (due) await_oldest();
  if (options_.after_step) options_.after_step(progress_.step, scale, stage_);
  if (due) tell_oldest();
}

// The clock is rank 0's; with it every rank comes to the same learning rates, stages and end.
Verdict Loop::verdict(bool stop) {
  const Verdict agreed = agree(
      comm_, {.elapsed = progress_.elapsed, .next_step = progress_.next_step, .stop = stop, .checkpoint = checkpoint_due()});
  progress_.elapsed = agreed.elapsed;
  progress_.next_step = agreed.next_step;
  return agreed;
}

// Whether a run by the clock will make checkpoints on the way, which have to fit.
bool Loop::measures_checkpoints() const {
  const double interval = recipe_.train.checkpoint_seconds;
  return !by_steps() && (recipe_.train.checkpoint_every > 0 || (interval > 0 && interval < progress_.budget));
}

bool Loop::checkpoint_due() const {
  constexpr double kMargin = 1.25;
  if (saved_step_ == progress_.step) return false;
  if (!by_steps() && progress_.elapsed + kMargin * longest_checkpoint_ > progress_.budget) return false;  // one follows the end
  if (recipe_.train.checkpoint_every > 0 && progress_.step % recipe_.train.checkpoint_every == 0) return true;
  const double interval = recipe_.train.checkpoint_seconds;
  return interval > 0 && options_.clock() - saved_at_ >= interval;
}

// Its time is counted, and no step's.
void Loop::checkpoint_inside() {
  checkpoint();
  const double now = options_.clock();
  progress_.elapsed = agree(comm_, {.elapsed = progress_.elapsed + now - mark_}).elapsed;
  mark_ = now;
}

void Loop::checkpoint() {
  settle();
  const double begun = options_.clock();
  trainer_.fetch_state();
  require_finite(trainer_.params().flat_values(), progress_.step);
  if (options_.before_checkpoint) options_.before_checkpoint(progress_.step);
  trainer_.optimizer().gather_state();
  folder_.sync();
  const RunState state{.step = progress_.step,
                       .elapsed = progress_.elapsed,
                       .next_step = progress_.next_step,
                       .stage = stage_,
                       .snapshots = trainer_.averager().snapshots(),
                       .loader = loader_.save(),
                       .unwritten = folder_.unwritten()};
  if (comm_.root()) save_checkpoint(folder_.checkpoints(), trainer_, state, run_, !by_steps());
  saved_step_ = progress_.step;
  saved_elapsed_ = progress_.elapsed;
  note_peak();
  if (options_.forecast_bytes && comm_.root()) teller_.forecast(options_.forecast_bytes(trainer_.averager().result()));
  saved_at_ = options_.clock();
  longest_checkpoint_ = std::max(longest_checkpoint_, saved_at_ - begun);
}

bool Loop::validation_due() const {
  const int64_t every = recipe_.train.validate_every;
  return every > 0 && progress_.step > 0 && progress_.step % every == 0 && !progress_.finished();
}

void Loop::validate_now(bool final) {
  if (!options_.validate) return;
  settle();
  trainer_.fetch_state();
  const Tensor weights = final ? trainer_.averager().result() : trainer_.params().flat_values();
  const Validation v = options_.validate(weights, stage_);
  if (final) validation_ = v;
  teller_.validated(progress_, v, final);
  mark_ = options_.clock();
}

TrainSummary Loop::summary() const {
  TrainSummary out{
      .steps = progress_.step, .loss = last_loss_, .train_seconds = progress_.elapsed, .startup_seconds = startup_};
  out.step_ms = progress_.step > 0 ? progress_.elapsed * 1e3 / static_cast<double>(progress_.step) : 0;
  teller_.add_rates(out);
  out.data_wait_seconds = loader_.waited_seconds();
  out.stage = stage_;
  out.validation = validation_;
  out.interrupted = interrupted_;
  return out;
}

}  // namespace

TrainSummary train(const Recipe& recipe, Trainer& trainer, data::Loader& loader, RunFolder& folder, ThreadPool& pool,
                   const TrainOptions& options) {
  return Loop(recipe, trainer, loader, folder, options).run(pool);
}

}  // namespace fairway
