#include "train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/fault.h"
#include "base/timeline.h"
#include "model/initialize.h"

namespace fairway {
namespace {

// Of the mean over so many micro-batches.
double gradient_of_loss(int64_t batches) {
  const bool spoiled = fault::armed && fault::strikes(fault::Event::nan);
  return spoiled ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(batches);
}

size_t io_bytes(const Recipe& recipe, const Geometry& geometry) {
  const auto tokens = static_cast<size_t>(geometry.tokens);
  const auto rope = [&](int64_t length) { return align_up(static_cast<size_t>(length * recipe.model.rope.dims) * 4); };
  size_t bytes = 3 * align_up(tokens * 4) + rope(geometry.row_length) + 1024;
  for (const int64_t length : recipe.data.short_rows.lengths) bytes += rope(length);
  return bytes;
}

// A device's gradients set out early where the host need not wait for them: through host memory (MPI) every matrix would stop
// the host, and with it the queue of kernels, until it is there.
Optimizer::Start start_of(const Executor& executor, const Communicator& comm) {
  return !executor.on_device() || !comm.host_waits() ? Optimizer::Start::early : Optimizer::Start::after_backward;
}

}  // namespace

Geometry micro_batch_geometry(const Recipe& recipe) {
  const bool packed = packs_documents(recipe);
  const int64_t tokens = recipe.train.micro_batch_tokens;
  return {.tokens = tokens, .row_length = packed ? tokens : recipe.data.seq_len, .packed = packed};
}

Trainer::Trainer(const Recipe& recipe, const Geometry& geometry, Executor& executor, Communicator& comm)
    : recipe_(&recipe),
      geometry_(geometry),
      executor_(&executor),
      comm_(&comm),
      params_(parameter_table(recipe), ParamStore::Gradients::kept),
      io_("inputs", io_bytes(recipe, geometry)),
      optimizer_(recipe, params_, executor, comm, start_of(executor, comm)),
      averager_(recipe, params_, executor),
      told_(static_cast<size_t>(recipe.train.micro_batches() + recipe.train.emulated_world)) {
  const Spec indices{{geometry.tokens}, DType::i32};
  inputs_.row_length = geometry.row_length;
  inputs_.tokens = io_.make("tokens", indices);
  inputs_.targets = io_.make("targets", indices);
  if (geometry.packed) inputs_.segment_start = io_.make("segment_start", indices);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, geometry.row_length), DType::f32});
  inputs_.loss_gradient = io_.make("loss gradient", {{1}, DType::f32});
  fill_rope(recipe, inputs_.rope);

  std::vector<Recording> recordings;
  size_t bytes = 0;
  std::map<int64_t, ModelInputs> inputs;  // by short_rows
  for (const TrainStage& stage : stages_to_prepare()) {
    if (!inputs.contains(stage.short_rows)) inputs[stage.short_rows] = inputs_with(stage.short_rows);
    Tape tape;
    const ModelOutputs outputs = build_model(tape, recipe, params_, inputs.at(stage.short_rows), stage.model);
    const Var gradient = tape.input("loss gradient", inputs_.loss_gradient);
    recordings.push_back(std::move(tape).finish(outputs.loss, gradient));
    stages_.push_back({stage, outputs, nullptr});
    bytes = std::max(bytes, recordings.back().program.arena_bytes);
  }
  for (Asked& asked : asked_) {
    asked.norms.resize(static_cast<size_t>(optimizer_.local_ranks()));
    asked.losses.resize(asked.norms.size() * static_cast<size_t>(recipe.train.micro_batches() / recipe.train.emulated_world));
    for (auto* deliveries : {&asked.norms, &asked.losses})
      for (auto& delivery : *deliveries) delivery = executor.open_delivery();
  }
  activations_ = std::make_unique<Arena>("activations", bytes);
  for (size_t i = 0; i < stages_.size(); ++i) stages_[i].session = executor.open(std::move(recordings[i]), activations_.get());
}

// All that the recipe can come to.
std::vector<TrainStage> Trainer::stages_to_prepare() const {
  std::vector<int64_t> lengths{0};
  if (!geometry_.packed)
    lengths.insert(lengths.end(), recipe_->data.short_rows.lengths.begin(), recipe_->data.short_rows.lengths.end());
  std::vector<TrainStage> stages;
  for (const int64_t length : lengths)
    for (const ModelStage model : {ModelStage{}, ModelStage{true, false}, ModelStage{false, true}, ModelStage{true, true}})
      if ((!model.looped || recipe_->model.loop.count > 0) && (!model.fake_quant || recipe_->train.qat.enabled))
        stages.push_back({model, length});
  return stages;
}

// The same memory, seen as rows of so many tokens. Short rows have the angles of long ones: weights keep their meaning.
ModelInputs Trainer::inputs_with(int64_t short_rows) {
  ModelInputs inputs = inputs_;
  if (short_rows == 0) return inputs;
  inputs.row_length = short_rows;
  inputs.rope = io_.make(fmt::format("rope of {}", short_rows), {rope_shape(*recipe_, short_rows), DType::f32});
  fill_rope(*recipe_, inputs.rope);
  return inputs;
}

bool Trainer::comes_to(const TrainStage& stage) const {
  const auto& lengths = recipe_->data.short_rows.lengths;
  return std::ranges::find(stages_, stage.model, [](const Prepared& of) { return of.stage.model; }) != stages_.end() &&
         (stage.short_rows == 0 || std::ranges::find(lengths, stage.short_rows) != lengths.end());
}

const Trainer::Prepared& Trainer::prepared(const TrainStage& stage) const {
  const TrainStage sought{stage.model, geometry_.packed ? 0 : stage.short_rows};
  const auto found = std::ranges::find(stages_, sought, &Prepared::stage);
  FAIRWAY_ASSERT(found != stages_.end(), "the recipe has no such stage");
  return *found;
}

Tensor Trainer::loss(const TrainStage& stage) const {
  const Prepared& at = prepared(stage);
  return at.session->fetched(at.outputs.loss.id);
}

void Trainer::initialize(uint64_t seed, ThreadPool& pool) {
  fairway::initialize(params_, recipe_->model, seed, pool);
  if (comm_->size() > 1) comm_->broadcast(params_.flat_values());
  averager_.start();
}

void Trainer::load(const MicroBatch& batch, double loss_gradient, int64_t short_rows) {
  const auto fill = [&](const Tensor& to, const Tensor& from) {
    FAIRWAY_ASSERT(from.present && from.spec.bytes() == to.spec.bytes(), "a micro-batch of another size than the program's");
    executor_->fill(to, from);
  };
  fill(inputs_.tokens, batch.tokens);
  fill(inputs_.targets, batch.targets);
  if (geometry_.packed && short_rows > 0) {
    const auto* starts = batch.segment_start.as<int32_t>();
    pieces_.resize(static_cast<size_t>(geometry_.tokens));
    for (int32_t i = 0; i < static_cast<int32_t>(geometry_.tokens); ++i)
      pieces_[static_cast<size_t>(i)] = i - (i - starts[i]) % static_cast<int32_t>(short_rows);
    fill(inputs_.segment_start, make_view(pieces_.data(), inputs_.segment_start.spec));
  } else if (geometry_.packed) {
    fill(inputs_.segment_start, batch.segment_start);
  }
  *inputs_.loss_gradient.as<float>() = static_cast<float>(loss_gradient);
  executor_->upload(inputs_.loss_gradient);
}

void Trainer::fetch_state() {
  for (const Tensor& state : {params_.flat_values(), optimizer_.flat_state(), averager_.ema(), averager_.swa()})
    executor_->download(state);
}

// Once weights are in place: a device takes them along. Later stages need no memory of their own then.
void Trainer::prepare_stages() {
  std::vector<Session*> sessions;
  for (const Prepared& stage : stages_) sessions.push_back(stage.session.get());
  std::ranges::sort(sessions, std::greater{}, [](const Session* session) { return session->program().arena_bytes; });
  for (Session* session : sessions) session->prepare();
}

void Trainer::begin_step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, const TrainStage& stage) {
  FAIRWAY_ASSERT(begun_ - finished_ < kStepsAhead, "too many steps were begun before their results were read");
  if (begun_ == 0) prepare_stages();
  const int64_t local = optimizer_.local_ranks(), per_rank = recipe_->train.micro_batches() / recipe_->train.emulated_world;
  const Prepared& now = prepared(stage);
  Session& passes = *now.session;
  Asked& asked = asked_[static_cast<size_t>(begun_++ % kStepsAhead)];
  const auto ask_loss = [&](int64_t batch) { passes.deliver(now.outputs.loss.id, *asked.losses[static_cast<size_t>(batch)]); };
  for (int64_t rank = 0; rank < local; ++rank) {
    const int64_t begin = rank * per_rank;
    optimizer_.begin_rank();
    for (int64_t i = 0; i < per_rank; ++i) {
      load(next(), gradient_of_loss(per_rank), stage.short_rows);
      const TimelineRange range("forward and backward");
      if (i + 1 == per_rank) {
        optimizer_.run_last(passes);
      } else {
        passes.run();
      }
      ask_loss(begin + i);
    }
    {
      const TimelineRange range("clip");
      optimizer_.end_rank(rank);
    }
    optimizer_.deliver_norm(*asked.norms[static_cast<size_t>(rank)]);
  }
  const TimelineRange range("update");
  optimizer_.update(numbers);
  averager_.observe(numbers.step, numbers.learning_rate_scale);
}

StepResult Trainer::finish_step() {
  FAIRWAY_ASSERT(finished_ < begun_, "a result of a step that was not begun");
  const int64_t world = recipe_->train.emulated_world, local = optimizer_.local_ranks(), first = comm_->rank() * local;
  const int64_t batches = recipe_->train.micro_batches(), per_rank = batches / world;
  Asked& asked = asked_[static_cast<size_t>(finished_++ % kStepsAhead)];
  std::fill(told_.begin(), told_.end(), 0.0);
  double* losses = told_.data();
  double* norms = losses + batches;
  for (int64_t i = 0; i < local * per_rank; ++i) {
    Delivery& delivered = *asked.losses[static_cast<size_t>(i)];
    delivered.receive();
    losses[first * per_rank + i] = static_cast<double>(delivered.number<float>(0));
  }
  for (int64_t rank = 0; rank < local; ++rank) {
    asked.norms[static_cast<size_t>(rank)]->receive();
    norms[first + rank] = Optimizer::norm_in(*asked.norms[static_cast<size_t>(rank)]);
  }
  comm_->all_reduce(told_);  // each number has one owner, so the sum is exact
  StepResult result;
  for (int64_t i = 0; i < batches; ++i) result.loss += losses[i];
  for (int64_t i = 0; i < world; ++i) result.gradient_norm += norms[i];
  result.loss /= static_cast<double>(batches);
  result.gradient_norm /= static_cast<double>(world);
  return result;
}

}  // namespace fairway
