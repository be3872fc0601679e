#include "train/teller.h"

#include <fmt/core.h>

#include <algorithm>

namespace fairway {
namespace {

constexpr int64_t kLoggedFirst = 10, kLoggedEvery = 100;  // steps that train.log tells

std::string times(const Progress& progress, int64_t step) {
  const double elapsed_ms = progress.elapsed * 1e3;
  return fmt::format("train_time:{:.0f}ms step_avg:{:.2f}ms", elapsed_ms,
                     elapsed_ms / static_cast<double>(std::max<int64_t>(step, 1)));
}

std::string position(const Progress& progress, int64_t step) {
  return progress.clock == ScheduleClock::steps ? fmt::format("{}/{}", step, progress.total_steps) : fmt::format("{}", step);
}

}  // namespace

void Teller::settings(const std::string& recipe_hash, uint64_t seed) {
  folder_.log(fmt::format("model_params:{} recipe:{}", parameter_count(recipe_.model), recipe_hash));
  folder_.log(fmt::format("train_batch_tokens:{} train_seq_len:{} iterations:{} max_wallclock_seconds:{:.3f} emulated_world:{}",
                          recipe_.train.batch_tokens, recipe_.data.seq_len, recipe_.train.steps, recipe_.train.seconds,
                          recipe_.train.emulated_world));
  folder_.log(fmt::format("seed:{}", seed));
}

void Teller::planned(const std::string& note) {
  line_.say(note);
  folder_.log("plan:" + note);
}

void Teller::extended(const std::string& sentence) {
  line_.say(sentence);
  folder_.log("run:" + sentence);
}

void Teller::keeps_free(double seconds) {
  const std::string text =
      fmt::format("{:.2f} s of the clock are reserved for calibration on training data, as measured", seconds);
  folder_.log("reserve: " + text);
  line_.say(text);
}

void Teller::step(const StepRecord& record, const Progress& progress, double seconds, double waited, bool last) {
  const auto tokens = static_cast<double>(recipe_.train.batch_tokens);
  tokens_done_ += tokens;
  worked_ += seconds;
  flops_done_ += tokens * flops_per_token(recipe_.model, recipe_.data.seq_len, record.looped);
  smooth_seconds_ = smooth_seconds_ == 0 ? seconds : 0.9 * smooth_seconds_ + 0.1 * seconds;
  folder_.record(record, progress.elapsed, seconds, waited);
  if (record.step <= kLoggedFirst || record.step % kLoggedEvery == 0 || last) {
    folder_.log(fmt::format("step:{} train_loss:{:.4f} {}", position(progress, record.step), record.loss,
                            times(progress, record.step)));
  }
  if (line_.due() || last) show(record, progress);
}

void Teller::show(const StepRecord& record, const Progress& progress) {
  const double rate = static_cast<double>(recipe_.train.batch_tokens) / smooth_seconds_;
  const double left = progress.clock == ScheduleClock::steps
                          ? static_cast<double>(progress.total_steps - record.step) * smooth_seconds_
                          : progress.budget - progress.elapsed;
  std::string text =
      fmt::format("step {}  loss {:.4f}  {} tokens/s", position(progress, record.step), record.loss, quantity_text(rate));
  if (peak_gflops_ > 0) {
    const double flops = rate * flops_per_token(recipe_.model, recipe_.data.seq_len, record.looped);
    text += fmt::format("  {:.0f}% of speed of light", 100 * flops / (peak_gflops_ * 1e9));
  }
  text += fmt::format("  {} left", duration_text(left));
  if (forecast_ > 0) text += fmt::format("  as published ~{} bytes", quantity_text(forecast_));
  line_.show(text);
}

void Teller::looped(const Progress& now) {
  folder_.log(fmt::format("layer_loop:enabled step:{} frac:{:.3f}", now.step, now.fraction()));
}

void Teller::fake_quant(int64_t step, double scale) {
  folder_.log(fmt::format("late_qat:enabled step:{} scale:{:.4f}", step, scale));
}

void Teller::validated(const Progress& progress, const Validation& v, bool final) {
  const std::string at = position(progress, progress.step),
                    score = fmt::format("val_loss:{:.4f} val_bpb:{:.4f}", v.loss, v.bpb);
  if (final) {
    folder_.log(fmt::format("DIAGNOSTIC post_ema {} eval_time:{:.0f}ms", score, v.seconds * 1e3));
  } else {
    folder_.log(fmt::format("step:{} {} {}", at, score, times(progress, progress.step)));
  }
  folder_.record_validation(progress.step, v.loss, v.bpb);
  line_.say(fmt::format("step {}: validation loss {:.4f} nats, {:.4f} bits per byte", at, v.loss, v.bpb));
}

void Teller::stopped_by_clock(const Progress& progress) {
  folder_.log(fmt::format("stopping_early: wallclock_cap train_time:{:.0f}ms step:{}", progress.elapsed * 1e3,
                          position(progress, progress.step)));
  if (progress.elapsed > progress.budget)
    line_.say(fmt::format("training took {:.3f} s of {:.3f}: the last step was longer than those before it", progress.elapsed,
                          progress.budget));
}

void Teller::averaged(const std::string& name) { folder_.log(fmt::format("{0}:applying {0} weights", name)); }

void Teller::averages_snapshots(int64_t step) { folder_.log(fmt::format("swa:start step:{}", step)); }

void Teller::memory(double bytes) {
  folder_.log(fmt::format("peak memory allocated: {0:.0f} MiB reserved: {0:.0f} MiB", bytes / (1 << 20)));
}

void Teller::add_rates(TrainSummary& summary) const {
  summary.tokens_per_second = worked_ > 0 ? tokens_done_ / worked_ : 0;
  summary.speed_of_light = worked_ > 0 && peak_gflops_ > 0 ? flops_done_ / worked_ / (peak_gflops_ * 1e9) : 0;
}

}  // namespace fairway
