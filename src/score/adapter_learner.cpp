#include "score/adapter_learner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "autograd/passes.h"
#include "autograd/tape.h"
#include "base/rng.h"

namespace fairway {

// Programs have rows of fixed length for a fixed number of documents.
struct AdapterLearner::PassShape {
  int64_t length, lanes;
  bool gradients, logits;
  auto operator<=>(const PassShape&) const = default;
};

class AdapterLearner::Pass {
 public:
  Pass(const ScoredModel& model, const ParamStore& params, const AdapterInputs& adapters, const PassShape& shape, int64_t chunk,
       std::optional<double> damping, const DocumentOffsets* offsets)
      : shape_(shape), chunk_(chunk), damping_(damping), adapters_(adapters) {
    if (offsets != nullptr) offsets_.emplace(*offsets, shape.lanes, chunk);
    adapters_.documents = shape.lanes;
    const Spec rows{{shape.lanes * shape.length}, DType::i32}, head{{shape.lanes * chunk}, DType::i32};
    const Spec rope{rope_shape(model.recipe, shape.length), DType::f32};
    io_ = std::make_unique<Arena>("adapter inputs",
                                  align_up(rows.bytes()) + 4 * align_up(head.bytes()) + align_up(rope.bytes()) + 1024);
    inputs_.tokens = io_->make("tokens", rows);
    inputs_.targets = io_->make("targets", head);
    inputs_.head_rows = io_->make("head_rows", head);
    inputs_.rope = io_->make("rope", rope);
    inputs_.loss_gradient = io_->make("loss gradient", {{1}, DType::f32});
    *inputs_.loss_gradient.as<float>() = static_cast<float>(shape.lanes);  // a mean for each document, and their sum
    if (damping) {
      hints_ = io_->make("hints", head);
      strengths_ = io_->make("strengths", {head.shape, DType::f32});
    }
    inputs_.row_length = shape.length;
    inputs_.adapters = &adapters_;
    fill_rope(model.recipe, inputs_.rope);
    record(model, params);
  }

  size_t activation_bytes() const { return recording_.program.arena_bytes; }
  void open(Executor& executor, Arena* activations) {
    executor_ = &executor;
    session_ = executor.open(std::move(recording_), activations);
  }
  void prepare() { session_->prepare(); }

  void run(std::span<const Chunk> chunks, int64_t length) {
    for (int64_t lane = 0; lane < shape_.lanes; ++lane) {
      // What pads a row is not seen, since attention is causal; nobody reads lanes without a document.
      const Chunk& given = chunks[std::min(static_cast<size_t>(lane), chunks.size() - 1)];
      const auto fill = [](int32_t* to, int64_t count, std::span<const uint16_t> from) {
        std::fill(std::copy(from.begin(), from.end(), to), to + count, 0);
      };
      fill(inputs_.tokens.as<int32_t>() + lane * shape_.length, shape_.length, given.window);
      fill(inputs_.targets.as<int32_t>() + lane * chunk_, chunk_, given.targets);
      if (offsets_) offsets_->fill(lane, given.targets, static_cast<size_t>(lane) >= chunks.size());
      for (int64_t j = 0; j < chunk_ && damping_; ++j) put_hint(lane * chunk_ + j, given.hints, static_cast<size_t>(j));
      for (int64_t j = 0; j < chunk_; ++j)
        inputs_.head_rows.as<int32_t>()[lane * chunk_ + j] = static_cast<int32_t>(lane * shape_.length + length - chunk_ + j);
    }
    for (const Tensor& input : {inputs_.tokens, inputs_.targets, inputs_.head_rows, hints_, strengths_})
      if (input) executor_->upload(input);
    if (offsets_) offsets_->send(*executor_);
    session_->run();
    session_->fetch(outputs_.nll.id);
    session_->fetch(digest_.id);
    for (const Var value : {outputs_.lse, outputs_.logits})
      if (shape_.logits) session_->fetch(value.id);
  }

  TargetScore score(int64_t document, int64_t row) const {
    const int64_t at = document * chunk_ + row;
    return scored(nll(document, row), whole_digest(digest_columns(at)), tilt_at(at), inputs_.targets.as<int32_t>()[at]);
  }
  double nll(int64_t document, int64_t row) const {
    return static_cast<double>(session_->fetched(outputs_.nll.id).as<float>()[document * chunk_ + row]);
  }
  Distribution distribution(int64_t document, int64_t row) const {
    const int64_t at = document * chunk_ + row;
    const Tensor logits = session_->fetched(outputs_.logits.id).slice(at);
    return {{logits.as<float>(), static_cast<size_t>(logits.numel())},
            session_->fetched(outputs_.lse.id).as<float>()[at],
            tilt_at(at)};
  }
  Session& session() { return *session_; }

 private:
  void record(const ScoredModel& model, const ParamStore& params) {
    Tape tape;
    outputs_ = build_model(tape, model.recipe, params, inputs_, model.stage);
    if (offsets_) outputs_ = offsets_->record(tape, outputs_, tape.input("targets", inputs_.targets));
    digest_ = tape.one(DistributionDigest{.cap = model.recipe.model.softcap, .damping = damping_.value_or(0)},
                       {outputs_.logits, outputs_.lse, damping_ ? tape.input("hints", hints_) : Var{},
                        damping_ ? tape.input("strengths", strengths_) : Var{}});
    tape.keep(digest_);
    for (const Var value : {outputs_.lse, outputs_.logits})
      if (shape_.logits) tape.keep(value);
    const Var gradient = shape_.gradients ? tape.input("loss gradient", inputs_.loss_gradient) : Var{};
    recording_ = shape_.gradients ? std::move(tape).finish(outputs_.loss, gradient) : std::move(tape).finish();
    overwrite_gradients(recording_.program);
    recording_.program.rows_alike = true;
  }

  void put_hint(int64_t at, std::span<const Hint> hints, size_t target) {
    const Hint hint = target < hints.size() ? hints[target] : Hint{};
    hints_.as<int32_t>()[at] = hint.token;
    strengths_.as<float>()[at] = hint.beta;
  }
  const int32_t* digest_columns(int64_t at) const {
    const Tensor digests = session_->fetched(digest_.id);
    return digests.as<int32_t>() + at * digests.cols();
  }
  TiltedRow tilt_at(int64_t at) const { return damping_ ? tilt_of(digest_columns(at), hints_.as<int32_t>()[at]) : TiltedRow{}; }

  PassShape shape_;
  int64_t chunk_;
  std::optional<double> damping_;
  AdapterInputs adapters_;
  Executor* executor_ = nullptr;
  std::unique_ptr<Arena> io_;
  ModelInputs inputs_;
  Tensor hints_, strengths_;  // of the chunks' targets
  std::optional<DocumentOffsets::Part> offsets_;
  ModelOutputs outputs_;
  Var digest_;
  Recording recording_;
  std::unique_ptr<Session> session_;
};

AdapterLearner::AdapterLearner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const ScoreRecipe& score,
                               const ScoreContext& context, int64_t documents)
    : model_(model),
      lora_(score.lora),
      damping_(score.mode.tilt ? std::optional(score.ngram.damping) : std::nullopt),
      offsets_(score.mode.slot ? std::make_unique<DocumentOffsets>(model, score.slot, documents) : nullptr),
      context_(context),
      params_(params),
      documents_(documents),
      longest_(std::max(score.context, score.lora.chunk)),
      adapters_(adapter_table(model.recipe.model, {lora_.sites, lora_.rank, documents}, model.stage.looped),
                ParamStore::Gradients::kept),
      state_("adapters", 3 * align_up(adapters_.flat_values().spec.bytes()) + 1024) {
  scalars_ = state_.make("step scalars", {{kStepScalars}, DType::f64});
  scalars_.as<double>()[static_cast<size_t>(StepScalar::learning_rate_scale)] = 1;
  const Spec flat = adapters_.flat_values().spec;
  drawn_ = state_.make("drawn", flat);
  first_ = state_.make("m", flat);
  second_ = state_.make("v", flat);
  draw();
  record_begin();
}

AdapterLearner::~AdapterLearner() = default;

// Every document begins with the same numbers.
void AdapterLearner::draw() {
  for (const ParamBank& bank : adapters_.banks()) {  // every A has D inputs
    if (bank.info.adapter->factor != AdapterFactor::a) continue;
    Rng rng(1, std::hash<std::string>{}(bank.info.name));
    const double bound = 1 / std::sqrt(static_cast<double>(model_.recipe.model.dim));
    float* values = drawn_.as<float>() + bank.offset;
    const int64_t factor = lora_.rank * model_.recipe.model.dim, all = factor * documents_;
    for (int64_t pass = 0; pass < bank.value.numel() / all; ++pass) {
      float* const own = values + pass * all;
      for (int64_t i = 0; i < factor; ++i) own[i] = static_cast<float>(bound * (2 * rng.uniform01() - 1));
      for (int64_t document = 1; document < documents_; ++document) std::copy_n(own, factor, own + document * factor);
    }
  }
}

void AdapterLearner::record_begin() {
  for (const Start start : {Start::cold, Start::warm}) {
    Tape tape;
    tape.scope("new adapters");
    if (start == Start::cold)
      tape.call(AccumulateScaled{.overwrite = true},
                {tape.input("adapters", adapters_.flat_values()), tape.input("drawn", drawn_), Var{}});
    for (const ParamBank& bank : adapters_.banks())
      if (start == Start::warm && bank.info.adapter->factor == AdapterFactor::b)
        tape.call(Fill{}, {tape.input("adapter", bank.value)});
    for (const Tensor& moment : {first_, second_}) tape.call(Fill{}, {tape.input("moment", moment)});
    if (offsets_) offsets_->record_begin(tape);
    begin_[static_cast<size_t>(start)] = context_.executor->open(std::move(tape).finish());
  }
}

// The first documents' parts of every adapter.
Session& AdapterLearner::update_for(int64_t lanes) {
  std::unique_ptr<Session>& session = updates_[lanes];
  if (session) return *session;
  Tape tape;
  tape.scope("AdamW of adapters");
  const AdamWUpdate step{
      .learning_rate = lora_.lr, .weight_decay = lora_.wd, .beta1 = lora_.beta1, .beta2 = lora_.beta2, .eps = lora_.eps};
  for (const ParamBank& bank : adapters_.banks()) {
    const Shape& shape = bank.value.spec.shape;
    const int64_t one = shape[shape.rank - 2] * shape.last(), all = one * documents_;
    for (int64_t at = bank.offset; at < bank.offset + bank.value.numel(); at += all) {
      const auto part = [&](const char* name, const Tensor& flat) { return tape.input(name, flat.part(at, {lanes * one})); };
      tape.call(step, {part("adapter", adapters_.flat_values()), part("gradient", adapters_.flat_grads()), part("m", first_),
                       part("v", second_), Var{}, tape.input("step scalars", scalars_)});
    }
  }
  session = context_.executor->open(std::move(tape).finish());
  return *session;
}

void AdapterLearner::begin_documents(Start start) {
  begin_[static_cast<size_t>(start)]->run();
  steps_ = 0;
  ready_.clear();
}

// Multiples of a tile of the device's attention, up to the context.
int64_t AdapterLearner::row_length(int64_t count) const {
  constexpr int64_t kStep = 128;
  return std::max(std::min((count + kStep - 1) / kStep * kStep, longest_), count);
}

// Powers of two, then multiples of eight: few programs, and few lanes without a document.
int64_t AdapterLearner::lanes_for(int64_t documents) const {
  constexpr int64_t kStep = 8;
  const int64_t lanes = documents <= kStep ? static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(documents)))
                                           : (documents + kStep - 1) / kStep * kStep;
  return std::min(lanes, documents_);
}

AdapterLearner::Pass& AdapterLearner::pass_for(const PassShape& shape) {
  std::unique_ptr<Pass>& pass = passes_[shape];
  if (pass) return *pass;
  const AdapterInputs inputs{&adapters_, lora_.sites, shape.lanes, lora_.alpha / static_cast<double>(lora_.rank)};
  pass = std::make_unique<Pass>(model_, *params_, inputs, shape, lora_.chunk, damping_, offsets_.get());
  const size_t bytes = pass->activation_bytes();
  if (context_.executor->on_device()) {
    pass->open(*context_.executor, nullptr);
    return *pass;
  }
  if (activations_.empty() || activations_.back()->capacity() < bytes)
    activations_.push_back(std::make_unique<Arena>("adapters at work", bytes));
  pass->open(*context_.executor, activations_.back().get());
  return *pass;
}

void AdapterLearner::prepare(int64_t length) {
  pass_for({.length = row_length(length), .lanes = documents_, .gradients = true, .logits = false}).prepare();
}

void AdapterLearner::run(std::span<const Chunk> chunks, int64_t length, Wanted wanted) {
  FAIRWAY_ASSERT(!chunks.empty() && static_cast<int64_t>(chunks.size()) <= documents_, "more documents than adapters");
  last_ = &pass_for({.length = row_length(length),
                     .lanes = lanes_for(static_cast<int64_t>(chunks.size())),
                     .gradients = wanted.gradients,
                     .logits = wanted.logits});
  if (offsets_) offsets_->set_chunks(steps_, *context_.executor);
  last_->run(chunks, length);
  ready_.clear();
  for (size_t i = 0; i < chunks.size() && wanted.gradients; ++i) ready_.push_back(chunks[i].targets);
}

Session& AdapterLearner::last_session() { return last_->session(); }
TargetScore AdapterLearner::score(int64_t document, int64_t row) const { return last_->score(document, row); }
double AdapterLearner::nll(int64_t document, int64_t row) const { return last_->nll(document, row); }
Distribution AdapterLearner::distribution(int64_t document, int64_t row) const { return last_->distribution(document, row); }

// Documents beyond those given have ended: what their adapters become is of no account.
void AdapterLearner::learn(std::span<const ScoredTokens> chunks) {
  FAIRWAY_ASSERT(chunks.size() <= ready_.size(), "there are no gradients of as many documents");
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto scored = chunks[i].targets(), ran = ready_[i];
    FAIRWAY_ASSERT(
        scored.data() == ran.data() && scored.size() == ran.size() && static_cast<int64_t>(ran.size()) == lora_.chunk,
        "gradients of another chunk than the one that was scored");
  }
  scalars_.as<double>()[static_cast<size_t>(StepScalar::adam_step)] = static_cast<double>(++steps_);
  context_.executor->upload(scalars_);
  update_for(lanes_for(static_cast<int64_t>(chunks.size()))).run();
  ready_.clear();
}

}  // namespace fairway
