#include "train/loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include "base/error.h"
#include "base/progress_line.h"
#include "base/signals.h"
#include "optim/schedule.h"
#include "train/averaged_weights.h"
#include "train/profile.h"
#include "train/share_run.h"

namespace fairway {
namespace {

constexpr int64_t kLoggedFirst = 10, kLoggedEvery = 100;  // steps that train.log tells

class Loop {
 public:
  Loop(const Recipe& recipe, Trainer& trainer, data::Loader& loader, RunFolder& folder, const TrainOptions& options)
      : recipe_(recipe),
        trainer_(trainer),
        loader_(loader),
        folder_(folder),
        options_(options),
        comm_(trainer.comm()),
        line_(options.quiet || !comm_.root()),
        hash_(recipe_hash(recipe)),
        profile_(options.profile) {
    progress_.clock = schedule_clock(recipe);
    progress_.total_steps = recipe.train.steps;
    progress_.budget = recipe.train.seconds - recipe.train.reserve_seconds;
    // Ranks agree on the time of finished steps only, and a timeline shows steps one by one.
    const bool alone = trainer.executor().stream() != nullptr && comm_.size() == 1 && options.profile.empty();
    behind_ = static_cast<size_t>(options.behind >= 0 ? options.behind : alone ? 1 : 0);
  }

  TrainSummary run(ThreadPool& pool);

 private:
  TrainSummary steps_to_the_end();
  bool by_steps() const { return progress_.clock == ScheduleClock::steps; }
  void begin(ThreadPool& pool);
  void log_settings();
  void one_step();
  Progress ahead() const;
  void switch_stages(double scale, const Progress& now);
  void await_oldest();
  void tell_oldest();
  void settle();
  void after_step(const StepRecord& record, double seconds);
  void checkpoint();
  bool checkpoint_due() const;
  Verdict verdict(bool stop);
  bool validation_due() const;
  void note_peak() {
    if (options_.measure_peak) peak_gflops_ = std::max(peak_gflops_, options_.measure_peak() * comm_.size());
  }
  void validate_now(bool final);
  std::string position(int64_t step) const {
    return by_steps() ? fmt::format("{}/{}", step, progress_.total_steps) : fmt::format("{}", step);
  }
  void show_progress(const StepRecord& record);
  double flops_per_second(double tokens_per_second) const;
  TrainSummary summary() const;

  const Recipe& recipe_;
  Trainer& trainer_;
  data::Loader& loader_;
  RunFolder& folder_;
  const TrainOptions& options_;
  Communicator& comm_;
  ProgressLine line_;
  std::string hash_;
  Profile profile_;
  Progress progress_;
  ModelStage stage_;
  std::deque<StepRecord> pending_;  // steps begun whose results were not read, at most behind_ between steps
  size_t behind_ = 0;
  double mark_ = 0;  // until when time was counted, while steps are pending
  double last_loss_ = 0, saved_at_ = 0, startup_ = 0, flops_done_ = 0, tokens_done_ = 0, worked_ = 0, smooth_seconds_ = 0,
         forecast_ = 0;
  double peak_gflops_ = 0;  // the best seen
  int64_t saved_step_ = -1;
  std::optional<Validation> validation_;
  bool interrupted_ = false;
};

void Loop::begin(ThreadPool& pool) {
  trainer_.initialize(options_.seed, pool);
  if (comm_.root()) folder_.require_space(3 * checkpoint_bytes(trainer_));
  double recorded = 0;
  bool resumed = false;
  if (options_.resume) {
    if (const auto state = load_on_all(folder_.checkpoints(), trainer_, hash_)) {
      progress_.step = saved_step_ = state->step;
      stage_ = state->stage;
      loader_.restore(state->loader);
      recorded = folder_.cut_back(state->step);
      progress_.elapsed = state->elapsed > 0 ? state->elapsed : recorded;
      progress_.elapsed = agree(comm_, {.elapsed = progress_.elapsed}).elapsed;
      line_.say(fmt::format("resuming after step {}", state->step));
      resumed = true;
    } else {
      folder_.cut_back(-1);  // before the first checkpoint: everything is told anew
    }
  }
  folder_.open_records();
  if (!resumed) log_settings();
  note_peak();
  startup_ = steady_seconds() - options_.started;
  saved_at_ = steady_seconds();
}

void Loop::log_settings() {
  folder_.log(fmt::format("model_params:{} recipe:{}", parameter_count(recipe_.model), hash_));
  folder_.log(fmt::format("train_batch_tokens:{} train_seq_len:{} iterations:{} max_wallclock_seconds:{:.3f} emulated_world:{}",
                          recipe_.train.batch_tokens, recipe_.data.seq_len, recipe_.train.steps, recipe_.train.seconds,
                          recipe_.train.emulated_world));
  folder_.log(fmt::format("seed:{}", options_.seed));
}

TrainSummary Loop::run(ThreadPool& pool) {
  begin(pool);
  const TrainSummary summary = steps_to_the_end();
  profile_.write(comm_);
  return summary;
}

TrainSummary Loop::steps_to_the_end() {
  const StopSignals signals;
  if (options_.resume && validation_due()) validate_now(false);  // it follows the checkpoint, so its record was cut
  for (;;) {
    if (ahead().finished()) {
      settle();
      if (progress_.finished()) break;  // not if the last steps took less time than it seemed
    }
    one_step();
    const Verdict now = verdict(signals.requested());
    if (now.stop) {
      checkpoint();
      interrupted_ = true;
      line_.say(fmt::format("interrupted: saved after step {}; go on with --resume", progress_.step));
      return summary();
    }
    if (now.checkpoint) checkpoint();
    if (validation_due()) validate_now(false);
  }
  if (!by_steps())
    folder_.log(fmt::format("stopping_early: wallclock_cap train_time:{:.0f}ms step:{}", progress_.elapsed * 1e3,
                            position(progress_.step)));
  folder_.log(fmt::format("{0}:applying {0} weights", trainer_.averager().result_name()));
  if (saved_step_ != progress_.step) checkpoint();
  trainer_.fetch_state();
  if (comm_.root()) save_averaged(folder_.path() / "averaged.safetensors", trainer_, stage_, progress_.step, hash_);
  if (options_.validate) validate_now(true);
  return summary();
}

// Where the run will stand once the pending steps are done, each as long as the last ones were.
Progress Loop::ahead() const {
  Progress now = progress_;
  now.elapsed += smooth_seconds_ * static_cast<double>(pending_.size());
  return now;
}

// One-way switches; the programs of all stages exist since start-up (spec §5.1, §11.3).
void Loop::switch_stages(double scale, const Progress& now) {
  if (!stage_.looped && loop_due(recipe_.model.loop, now)) {
    stage_.looped = true;
    settle();  // the log goes by steps
    folder_.log(fmt::format("layer_loop:enabled step:{} frac:{:.3f}", now.step, now.fraction()));
  }
  if (recipe_.train.qat.enabled && !stage_.fake_quant && scale < recipe_.train.qat.lr_mul_below) {
    stage_.fake_quant = true;
    settle();
    folder_.log(fmt::format("late_qat:enabled step:{} scale:{:.4f}", progress_.step, scale));
  }
}

// Waits for the first pending step. Only steps with finite numbers are told or kept in a checkpoint.
void Loop::await_oldest() {
  const StepResult result = trainer_.finish_step();
  StepRecord& record = pending_.front();
  record.loss = result.loss;
  record.gradient_norm = result.gradient_norm;
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  const std::string kept =
      saved_step_ >= 0 ? fmt::format("the checkpoint after step {} is kept", saved_step_) : "no checkpoint was made yet";
  throw WorkError(fmt::format(
      "step {}: the loss is {} and the gradient norm {}; {}. Lower the learning rates, or resume with another seed of data",
      record.step, result.loss, result.gradient_norm, kept));
}

// Counts the time up to now as the first pending step's and tells its numbers.
void Loop::tell_oldest() {
  const double now = steady_seconds(), seconds = now - mark_;
  const StepRecord record = pending_.front();
  pending_.pop_front();
  mark_ = now;
  progress_.elapsed += seconds;
  last_loss_ = record.loss;
  after_step(record, seconds);
}

void Loop::settle() {
  while (!pending_.empty()) {
    await_oldest();
    tell_oldest();
  }
}

void Loop::one_step() {
  profile_.before_step();
  const double begun = steady_seconds();
  const Progress now = ahead();
  const double scale = learning_rate_scale(recipe_.optim.schedule, now);
  switch_stages(scale, now);
  if (pending_.empty()) mark_ = std::max(mark_, begun);
  const StepNumbers numbers{scale, muon_momentum(recipe_.optim.matrix, progress_.step), progress_.step + 1};
  trainer_.begin_step(
      [&] {
        const data::Batch& batch = loader_.next();
        return MicroBatch{batch.tokens, batch.targets, batch.segment_start};
      },
      numbers, stage_);
  ++progress_.step;
  pending_.push_back({progress_.step, 0, 0, scale, numbers.momentum, stage_.looped, stage_.fake_quant});
  const bool due = pending_.size() > behind_;
  if (due) await_oldest();
  if (options_.after_step) options_.after_step(progress_.step, scale, stage_);
  if (due) tell_oldest();
}

void Loop::after_step(const StepRecord& record, double seconds) {
  const auto tokens = static_cast<double>(recipe_.train.batch_tokens);
  tokens_done_ += tokens;
  worked_ += seconds;
  flops_done_ += tokens * flops_per_token(recipe_.model, recipe_.data.seq_len, record.looped);
  smooth_seconds_ = smooth_seconds_ == 0 ? seconds : 0.9 * smooth_seconds_ + 0.1 * seconds;
  folder_.record(record, progress_.elapsed, seconds, loader_.waited_seconds());
  const bool last = progress_.finished() && pending_.empty();
  if (record.step <= kLoggedFirst || record.step % kLoggedEvery == 0 || last) {
    folder_.log(fmt::format("step:{} train_loss:{:.4f} train_time:{:.0f}ms step_avg:{:.2f}ms", position(record.step),
                            record.loss, progress_.elapsed * 1e3, progress_.elapsed * 1e3 / static_cast<double>(record.step)));
  }
  if (line_.due() || last) show_progress(record);
}

void Loop::show_progress(const StepRecord& record) {
  const double rate = static_cast<double>(recipe_.train.batch_tokens) / smooth_seconds_;
  const double left = by_steps() ? static_cast<double>(progress_.total_steps - record.step) * smooth_seconds_
                                 : progress_.budget - progress_.elapsed;
  std::string text = fmt::format("step {}  loss {:.4f}  {} tokens/s", position(record.step), record.loss, quantity_text(rate));
  if (peak_gflops_ > 0) {
    const double flops = rate * flops_per_token(recipe_.model, recipe_.data.seq_len, record.looped);
    text += fmt::format("  {:.0f}% of speed of light", 100 * flops / (peak_gflops_ * 1e9));
  }
  text += fmt::format("  {} left", duration_text(left));
  if (forecast_ > 0) text += fmt::format("  artifact ~{} bytes", quantity_text(forecast_));
  line_.show(text);
}

// The clock is rank 0's; with it every rank comes to the same learning rates, stages and end.
Verdict Loop::verdict(bool stop) {
  const Verdict agreed = agree(comm_, {.elapsed = progress_.elapsed, .stop = stop, .checkpoint = checkpoint_due()});
  progress_.elapsed = agreed.elapsed;
  return agreed;
}

bool Loop::checkpoint_due() const {
  if (saved_step_ == progress_.step) return false;
  if (recipe_.train.checkpoint_every > 0 && progress_.step % recipe_.train.checkpoint_every == 0) return true;
  const double interval = recipe_.train.checkpoint_seconds;
  return interval > 0 && steady_seconds() - saved_at_ >= interval;
}

void Loop::checkpoint() {
  settle();
  trainer_.fetch_state();
  require_finite(trainer_.params().flat_values(), progress_.step);
  if (options_.before_checkpoint) options_.before_checkpoint(progress_.step);
  trainer_.optimizer().gather_state(trainer_.executor());
  const RunState state{progress_.step, progress_.elapsed, stage_, trainer_.averager().snapshots(), loader_.save()};
  if (comm_.root()) save_checkpoint(folder_.checkpoints(), trainer_, state, hash_, !by_steps());
  saved_step_ = progress_.step;
  saved_at_ = steady_seconds();
  note_peak();
  if (options_.forecast_bytes && comm_.root()) forecast_ = options_.forecast_bytes(trainer_.averager().result());
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
  if (final) {
    validation_ = v;
    folder_.log(
        fmt::format("DIAGNOSTIC post_ema val_loss:{:.4f} val_bpb:{:.4f} eval_time:{:.0f}ms", v.loss, v.bpb, v.seconds * 1e3));
  } else {
    folder_.log(fmt::format("step:{} val_loss:{:.4f} val_bpb:{:.4f} train_time:{:.0f}ms step_avg:{:.2f}ms",
                            position(progress_.step), v.loss, v.bpb, progress_.elapsed * 1e3,
                            progress_.elapsed * 1e3 / static_cast<double>(std::max<int64_t>(progress_.step, 1))));
  }
  folder_.record_validation(progress_.step, v.loss, v.bpb);
  line_.say(fmt::format("step {}: validation loss {:.4f} nats, {:.4f} bits per byte", position(progress_.step), v.loss, v.bpb));
}

TrainSummary Loop::summary() const {
  TrainSummary out{
      .steps = progress_.step, .loss = last_loss_, .train_seconds = progress_.elapsed, .startup_seconds = startup_};
  out.step_ms = progress_.step > 0 ? progress_.elapsed * 1e3 / static_cast<double>(progress_.step) : 0;
  out.tokens_per_second = worked_ > 0 ? tokens_done_ / worked_ : 0;
  out.speed_of_light = worked_ > 0 && peak_gflops_ > 0 ? flops_done_ / worked_ / (peak_gflops_ * 1e9) : 0;
  out.data_wait_seconds = loader_.waited_seconds();
  out.stage = stage_;
  out.validation = validation_;
  out.interrupted = interrupted_;
  return out;
}

}  // namespace

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

data::SamplerOptions sampler_options(const Recipe& recipe) {
  const Geometry geometry = micro_batch_geometry(recipe);
  const int64_t per_rank = recipe.train.batch_tokens / recipe.train.emulated_world;
  return {.kind = data::sampler_kind(name_of(recipe.data.sampler)),
          .length = geometry.row_length,
          .rows = per_rank / geometry.row_length,
          .world = static_cast<int>(recipe.train.emulated_world),
          .seed = static_cast<uint64_t>(recipe.train.seed),
          .bos = static_cast<uint16_t>(recipe.model.bos),
          .max_segment = recipe.data.max_segment};
}

data::LoaderOptions loader_options(const Recipe& recipe, const Communicator& comm) {
  return {.rank = comm.rank(),
          .ranks = comm.size(),
          .split = recipe.train.micro_batches() / recipe.train.emulated_world,
          .vocab = static_cast<int>(recipe.model.vocab)};
}

TrainSummary train(const Recipe& recipe, Trainer& trainer, data::Loader& loader, RunFolder& folder, ThreadPool& pool,
                   const TrainOptions& options) {
  return Loop(recipe, trainer, loader, folder, options).run(pool);
}

}  // namespace fairway
