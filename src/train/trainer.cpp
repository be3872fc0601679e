#include "train/trainer.h"

#include <algorithm>
#include <limits>

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
  return 3 * align_up(tokens * 4) + align_up(static_cast<size_t>(geometry.row_length * recipe.model.rope.dims) * 4) + 1024;
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

  std::array<Recording, kStages> recordings;
  size_t bytes = 0;
  for (ModelStage stage : {ModelStage{}, ModelStage{true, false}, ModelStage{false, true}, ModelStage{true, true}}) {
    if (!reachable(stage)) continue;
    Tape tape;
    const ModelOutputs outputs = build_model(tape, recipe, params_, inputs_, stage);
    outputs_[index_of(stage)] = outputs;
    const Var gradient = tape.input("loss gradient", inputs_.loss_gradient);
    recordings[index_of(stage)] = std::move(tape).finish(outputs.loss, gradient);
    bytes = std::max(bytes, recordings[index_of(stage)].program.arena_bytes);
  }
  for (Asked& asked : asked_) {
    asked.norms.resize(static_cast<size_t>(optimizer_.local_ranks()));
    asked.losses.resize(asked.norms.size() * static_cast<size_t>(recipe.train.micro_batches() / recipe.train.emulated_world));
    for (auto* deliveries : {&asked.norms, &asked.losses})
      for (auto& delivery : *deliveries) delivery = executor.open_delivery();
  }
  activations_ = std::make_unique<Arena>("activations", bytes);
  for (size_t i = 0; i < kStages; ++i) {
    if (!recordings[i].program.calls.empty()) stages_[i] = executor.open(std::move(recordings[i]), activations_.get());
  }
}

bool Trainer::reachable(ModelStage stage) const {
  return (!stage.looped || recipe_->model.loop.count > 0) && (!stage.fake_quant || recipe_->train.qat.enabled);
}

Session& Trainer::session(ModelStage stage) const {
  const auto& session = stages_[index_of(stage)];
  FAIRWAY_ASSERT(session != nullptr, "the recipe has no such stage");
  return *session;
}

Tensor Trainer::loss(ModelStage stage) const { return session(stage).fetched(outputs_[index_of(stage)].loss.id); }

void Trainer::initialize(uint64_t seed, ThreadPool& pool) {
  fairway::initialize(params_, recipe_->model, seed, pool);
  if (comm_->size() > 1) comm_->broadcast(params_.flat_values());
  averager_.start();
}

void Trainer::load(const MicroBatch& batch, double loss_gradient) {
  const auto fill = [&](const Tensor& to, const Tensor& from) {
    FAIRWAY_ASSERT(from.present && from.spec.bytes() == to.spec.bytes(), "a micro-batch of another size than the program's");
    executor_->fill(to, from);
  };
  fill(inputs_.tokens, batch.tokens);
  fill(inputs_.targets, batch.targets);
  if (geometry_.packed) fill(inputs_.segment_start, batch.segment_start);
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
  for (const auto& stage : stages_)
    if (stage) sessions.push_back(stage.get());
  std::ranges::sort(sessions, std::greater{}, [](const Session* session) { return session->program().arena_bytes; });
  for (Session* session : sessions) session->prepare();
}

void Trainer::begin_step(const std::function<MicroBatch()>& next, const StepNumbers& numbers, ModelStage stage) {
  FAIRWAY_ASSERT(begun_ - finished_ < kStepsAhead, "too many steps were begun before their results were read");
  if (begun_ == 0) prepare_stages();
  const int64_t local = optimizer_.local_ranks(), per_rank = recipe_->train.micro_batches() / recipe_->train.emulated_world;
  Session& passes = session(stage);
  Asked& asked = asked_[static_cast<size_t>(begun_++ % kStepsAhead)];
  const auto ask_loss = [&](int64_t batch) {
    passes.deliver(outputs_[index_of(stage)].loss.id, *asked.losses[static_cast<size_t>(batch)]);
  };
  for (int64_t rank = 0; rank < local; ++rank) {
    const int64_t begin = rank * per_rank;
    optimizer_.begin_rank();
    for (int64_t i = 0; i < per_rank; ++i) {
      load(next(), gradient_of_loss(per_rank));
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
