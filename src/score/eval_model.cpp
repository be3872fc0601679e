#include "score/eval_model.h"

#include "autograd/tape.h"

namespace fairway {
namespace {

size_t io_bytes(const Recipe& recipe, int64_t tokens, int64_t row_length, const EvalOptions& options) {
  const auto count = [](int64_t n) { return align_up(static_cast<size_t>(n) * 4); };
  return 3 * count(tokens) + 4 * count(options.head_rows > 0 ? options.head_rows : tokens) +
         count(row_length * recipe.model.rope.dims);
}

}  // namespace

void EvalRecords::receive() {
  nll_->receive();
  if (with_digests_) digest_->receive();
}

TargetScore EvalRecords::score(int64_t row) const {
  const auto at = static_cast<size_t>(row);
  if (!with_digests_) return {nll_->number<float>(at)};
  const bool tilted = !hints_.empty();
  const size_t count = tilted ? DistributionDigest::kTiltedColumns : DistributionDigest::kColumns;
  int32_t columns[DistributionDigest::kTiltedColumns] = {};
  for (size_t i = 0; i < count; ++i) columns[i] = digest_->number<int32_t>(count * at + i);
  if (!tilted) return {nll_->number<float>(at), whole_digest(columns)};
  return scored(static_cast<double>(nll_->number<float>(at)), whole_digest(columns), tilt_of(columns, hints_[at]),
                targets_[at]);
}

EvalModel::EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor)
    : EvalModel(recipe, rows, row_length, stage, executor,
                std::make_shared<ParamStore>(parameter_table(recipe), ParamStore::Gradients::none)) {}

EvalModel::EvalModel(const Recipe& recipe, int64_t rows, int64_t row_length, ModelStage stage, Executor& executor,
                     const std::shared_ptr<ParamStore>& params, const EvalOptions& options)
    : rows_(rows),
      row_length_(row_length),
      executor_(&executor),
      params_(params),
      io_("inputs", io_bytes(recipe, rows * row_length, row_length, options)) {
  const Spec indices{{rows * row_length}, DType::i32};
  const Spec head{{options.head_rows > 0 ? options.head_rows : rows * row_length}, DType::i32};
  inputs_.tokens = io_.make("tokens", indices);
  if (options.segments) inputs_.segment_start = io_.make("segment_start", indices);
  if (options.head_rows > 0) inputs_.head_rows = io_.make("head_rows", head);
  if (!options.head) inputs_.targets = io_.make("targets", head);
  inputs_.rope = io_.make("rope", {rope_shape(recipe, row_length), DType::f32});
  inputs_.row_length = row_length;
  fill_rope(recipe, inputs_.rope);
  inputs_.headless = static_cast<bool>(options.head);
  const bool tilted = options.rows == EvalRows::records && options.damping;
  if (tilted) {
    hints_ = io_.make("hints", head);
    strengths_ = io_.make("strengths", {head.shape, DType::f32});
  }
  Tape tape;
  outputs_ = build_model(tape, recipe, *params_, inputs_, stage);
  if (options.head) outputs_ = options.head(tape, outputs_.hidden, outputs_.table);
  if (options.rows == EvalRows::records)
    digest_ = tape.one(DistributionDigest{.cap = recipe.model.softcap, .damping = options.damping.value_or(0)},
                       {outputs_.logits, outputs_.lse, tilted ? tape.input("hints", hints_) : Var{},
                        tilted ? tape.input("strengths", strengths_) : Var{}});
  if (options.rows != EvalRows::distributions) outputs_.logits = outputs_.lse = {};
  for (const Var value : {digest_, outputs_.logits, outputs_.lse})
    if (value) tape.keep(value);
  Recording recording = std::move(tape).finish();
  recording.program.rows_alike = true;
  session_ = executor.open(std::move(recording));
}

void EvalModel::send_inputs() {
  for (const Tensor& input : {inputs_.tokens, inputs_.targets, inputs_.head_rows, inputs_.segment_start, hints_, strengths_})
    executor_->upload(input);
}

void EvalModel::set_hint(int64_t row, const Hint& hint) {
  hints_.as<int32_t>()[row] = hint.token;
  strengths_.as<float>()[row] = hint.beta;
}

void EvalModel::fetch_results() {
  for (const Var value : {outputs_.nll, outputs_.lse, outputs_.logits})
    if (value) session_->fetch(value.id);
}

void EvalModel::run() {
  send_inputs();
  session_->run();
  fetch_results();
}

void EvalModel::run(EvalRecords& to) {
  send_inputs();
  session_->run();
  session_->deliver(outputs_.nll.id, *to.nll_);
  to.with_digests_ = static_cast<bool>(digest_);
  const std::span<const int32_t> sent_hints = indices(hints_), sent_targets = targets();
  to.hints_.assign(sent_hints.begin(), sent_hints.end());
  if (hints_) to.targets_.assign(sent_targets.begin(), sent_targets.end());
  if (digest_) session_->deliver(digest_.id, *to.digest_);
}

void EvalModel::run(const Observer& observer) {
  send_inputs();
  session_->run(observer);
  fetch_results();
}

std::span<int32_t> EvalModel::indices(const Tensor& tensor) {
  if (!tensor) return {};
  return {tensor.as<int32_t>(), static_cast<size_t>(tensor.numel())};
}

std::span<const float> EvalModel::values(Var value) const {
  const Tensor tensor = session_->fetched(value.id);
  return {tensor.as<float>(), static_cast<size_t>(tensor.numel())};
}

std::span<const float> EvalModel::nll() const { return values(outputs_.nll); }
std::span<const float> EvalModel::lse() const { return values(outputs_.lse); }

std::span<const float> EvalModel::logits(int64_t row) const {
  const Tensor logits = session_->fetched(outputs_.logits.id).slice(row);
  return {logits.as<float>(), static_cast<size_t>(logits.numel())};
}

}  // namespace fairway
