#include "stages/calibration.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/progress_line.h"
#include "pack/calibrate.h"
#include "pack/gradient_moments.h"
#include "pack/hessian_file.h"
#include "pack/shared_hessians.h"
#include "train/loader_settings.h"

namespace fairway {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kOnlineStream = 0x5eed0000;  // away from the training run's own order of data

CalibrationProgress shown_on(ProgressLine& line, LapClock& laps) {
  return [&line, &laps, begun = seconds_now(), last = std::string()](const char* what, int64_t done, int64_t total) mutable {
    laps.lap(what);
    if (last != what) last = what, begun = seconds_now();
    if (!line.due() || seconds_now() - begun < 0.5) return;
    const double left = (seconds_now() - begun) * static_cast<double>(total - done) / static_cast<double>(done);
    line.show(fmt::format("{}: {}/{}  {} left", what, done, total, duration_text(left)));
  };
}

HessianStore from_run(const CalibrationRequest& request, OpSite site, std::vector<std::string>& problems) {
  const fs::path path = request.source.folder / kHessianFile;
  if (!fs::exists(path))
    throw InputError(path.string() +
                     ": no such file; a run writes it if quant.calibration is \"online\" and it trains long enough");
  HessianStore hessians(site);
  load_hessians(path, load_recipe((request.source.folder / "recipe.toml").string()), hessians);
  problems = hessians.finish();
  return hessians;
}

data::ShardSet shards_of(const CalibrationRequest& request) {
  return data::ShardSet::open_train(request.data.empty() ? request.source.folder / "data" : request.data);
}

HessianStore from_shards(const CalibrationRequest& request, const CalibrationModel& model, std::vector<std::string>& problems) {
  const data::ShardSet shards = shards_of(request);
  data::Loader loader(shards, sampler_options(request.source.recipe), loader_options(request.source.recipe));
  return calibrate_train(model, loader, request.source.recipe.quant.calibration_batches, problems);
}

}  // namespace

namespace {

CalibrationModel calibration_model(const CalibrationRequest& request, Machine& machine, Communicator& comm,
                                   ProgressLine& line) {
  const Recipe& recipe = request.source.recipe;
  return {recipe,
          *request.source.weights.params,
          {.looped = request.source.weights.looped},
          *machine.executor,
          *machine.executor,
          shown_on(line, machine.laps),
          comm};
}

int64_t moment_length(const Recipe& recipe) { return std::min(kMomentTokens, recipe.data.seq_len); }

bool covers(const OwnText* text, int64_t sequences, int64_t length) {
  return text != nullptr && text->length > length && static_cast<int64_t>(text->tokens.size()) >= sequences * text->length;
}

// The first tokens of the rows of training batches.
std::vector<int32_t> training_text(const Recipe& recipe, const data::ShardSet& shards, int64_t length) {
  data::Loader loader(shards, sampler_options(recipe), loader_options(recipe));
  std::vector<int32_t> text;
  const int64_t sequences = moment_sequences(recipe.quant);
  for (int64_t rows = 0; rows < sequences;) {
    const data::Batch& batch = loader.next();
    for (int64_t r = 0; r < batch.tokens.dim(0) && rows < sequences; ++r, ++rows) {
      const int32_t* tokens = batch.tokens.as<int32_t>() + r * batch.tokens.cols();
      text.insert(text.end(), tokens, tokens + length);
      text.push_back(batch.targets.as<int32_t>()[r * batch.targets.cols() + length - 1]);
    }
  }
  return text;
}

// The beginnings of rows that are there already, or rows made for it: of one seed they are the same. What rows of a matrix say
// of each other wants text as the model predicts it, whose gradients add up to nothing from token to token.
std::vector<int32_t> own_text(const CalibrationRequest& request, const CalibrationModel& model, int64_t length) {
  const QuantRecipe& quant = request.source.recipe.quant;
  SelfCalibration own{.seed = static_cast<uint64_t>(request.source.recipe.train.seed)};
  const int64_t sequences = moment_sequences(quant);
  if (quant.two_sided) own.temperature = 1;
  if (quant.two_sided || !covers(request.text, sequences, length)) return calibration_text(model, own, sequences, length + 1);
  std::vector<int32_t> text;
  for (int64_t row = 0; row < sequences; ++row) {
    const auto first = request.text->tokens.begin() + row * request.text->length;
    text.insert(text.end(), first, first + length + 1);
  }
  return text;
}

}  // namespace

TensorMoments make_moments(const CalibrationRequest& request, Machine& machine, Communicator& comm, bool quiet) {
  const Recipe& recipe = request.source.recipe;
  ProgressLine line(quiet);
  const CalibrationModel model = calibration_model(request, machine, comm, line);
  int64_t length = moment_length(recipe);
  if (covers(request.text, moment_sequences(recipe.quant), length - 1)) length = std::min(length, request.text->length - 1);
  const std::vector<int32_t> text =
      request.from == Calibration::train ? training_text(recipe, shards_of(request), length) : own_text(request, model, length);
  TensorMoments moments = gradient_moments(model, text, length, recipe.quant.two_sided ? request.hessians : nullptr);
  machine.laps.lap("gradients");
  return moments;
}

// A quarter of the rows is measured; as many as fit into 256 MiB of predictions. On the CPU a model whose rows would take
// minutes is measured on those of two passes, and not tuned.
std::unique_ptr<KlDivergence> make_divergence(const CalibrationRequest& request, Machine& machine, Communicator& comm,
                                              bool quiet) {
  constexpr int64_t kMostRows = 128, kMostPredictions = int64_t{1} << 26, kPass = KlDivergence::kTogether;
  constexpr double kMostFlops = 2e12;  // of a step on all rows
  const Recipe& recipe = request.source.recipe;
  ProgressLine line(quiet);
  const CalibrationModel model = calibration_model(request, machine, comm, line);
  const int64_t length = moment_length(recipe), fitting = kMostPredictions / (length * recipe.model.vocab);
  int64_t rows = std::clamp(fitting, kPass, kMostRows) / kPass * kPass, measured = std::max(kPass, rows / 4 / kPass * kPass);
  const double flops = static_cast<double>(rows * length) * flops_per_token(recipe.model, length, model.stage.looped);
  if (!machine.executor->on_device() && flops > kMostFlops) rows = measured = std::min(rows, 2 * kPass);
  const SelfCalibration own{.seed = static_cast<uint64_t>(recipe.train.seed) + 1};
  return std::make_unique<KlDivergence>(model, calibration_text(model, own, rows, length + 1), length, measured);
}

HessianStore make_hessians(const CalibrationRequest& request, Machine& machine, Communicator& comm, bool quiet, OwnText* kept) {
  const Recipe& recipe = request.source.recipe;
  ProgressLine line(quiet);
  const CalibrationModel model = calibration_model(request, machine, comm, line);
  std::vector<std::string> problems;
  HessianStore hessians = [&] {
    switch (request.from) {
      case Calibration::train: return from_shards(request, model, problems);
      case Calibration::online: return from_run(request, *machine.executor, problems);
      case Calibration::self: break;
    }
    SelfCalibration own = request.own;
    own.seed = static_cast<uint64_t>(recipe.train.seed);
    return calibrate_self(model, own, problems, kept);
  }();
  machine.laps.lap("Hessians");
  for (const std::string& problem : problems) line.say(problem);
  return hessians;
}

bool wants_hessians(const QuantRecipe& quant) {
  if (quant.rule == QuantRule::rtn) return false;
  return quant.rule == QuantRule::gptq || quant.choice == ClipChoice::hessian || quant.scale == ScaleRule::hessian_sdclip;
}

double foresee_calibration(const Recipe& recipe, const ParamStore& weights, const data::ShardSet& shards, Machine& machine,
                           Communicator& comm) {
  constexpr double kMargin = 1.25;
  if (recipe.quant.calibration != Calibration::train || !wants_hessians(recipe.quant)) return 0;
  // Two groups of batches, and some sequences: the first half makes programs and graphs, the second is as long as all that
  // follow.
  const int64_t batches = recipe.quant.calibration_batches, length = moment_length(recipe), timed_sequences = 16;
  const int64_t timed_batches = 2 * ((batches + SharedHessians::kGroups - 1) / SharedHessians::kGroups);
  std::vector<double> ends;  // when each was done
  const CalibrationModel model{recipe,
                               weights,
                               {.looped = recipe.model.loop.count > 0},
                               *machine.executor,
                               *machine.executor,
                               [&](const char*, int64_t, int64_t) { ends.push_back(seconds_now()); },
                               comm};
  std::vector<std::string> problems;  // of weights that were not trained: said when they are
  const double begun = seconds_now();
  double rest = 0;  // what those that are not timed will take
  const auto foresee = [&](int64_t all) {
    const size_t timed = ends.size();
    if (static_cast<int64_t>(timed) < all)
      rest += (ends[timed - 1] - ends[timed / 2 - 1]) / static_cast<double>(timed - timed / 2) *
              static_cast<double>(all - static_cast<int64_t>(timed));
    ends.clear();
  };
  data::Loader loader(shards, sampler_options(recipe), loader_options(recipe));
  const HessianStore hessians = calibrate_train(model, loader, batches, problems, timed_batches);
  const auto [first, end] = SharedHessians::part_of(comm, batches);
  foresee(end - first);  // of this rank
  const std::vector<int32_t> text = training_text(recipe, shards, length);
  gradient_moments(model, std::span(text).first(static_cast<size_t>(timed_sequences * (length + 1))), length,
                   recipe.quant.two_sided ? &hessians : nullptr);
  foresee(moment_sequences(recipe.quant));
  return kMargin * (seconds_now() - begun + rest);
}

OnlineBesideTraining::OnlineBesideTraining(const Recipe& recipe, const Trainer& trainer, const data::ShardSet& shards,
                                           const RunFolder& folder, Machine& machine, TrainOptions& options) {
  if (recipe.quant.calibration != Calibration::online) return;
  data::SamplerOptions sampling = sampler_options(recipe);
  sampling.seed += kOnlineStream;
  loader_ = std::make_unique<data::Loader>(shards, sampling, loader_options(recipe));
  online_ = std::make_unique<OnlineCalibration>(recipe, trainer.params(), *loader_, *machine.executor);
  const fs::path path = folder.path() / kHessianFile;
  if (options.resume && folder.extension().empty() && fs::exists(path)) online_->load(path);  // a longer run sums anew
  options.after_step = [this](int64_t step, double scale, ModelStage stage) { online_->after_step(step, scale, stage.looped); };
  options.before_checkpoint = [this, path](int64_t step) { online_->save(path, step); };
}

}  // namespace fairway
