#include "score/slot_head.h"

#include <algorithm>

namespace fairway {

SlotState::SlotState(int64_t groups, int64_t width)
    : memory_("offsets", 3 * align_up(static_cast<size_t>(groups * width) * sizeof(float)) + 1024) {
  const Spec spec{{groups, width}, DType::f32};
  offset = memory_.make("offset", spec);
  m = memory_.make("m", spec);
  v = memory_.make("v", spec);
  taken = memory_.make("taken", {{1}, DType::i32});
}

namespace {

class SlotHead final : public WindowHead {
 public:
  SlotHead(const ScoredModel& model, const SlotRecipe& slot, const SlotForm& form, const std::shared_ptr<SlotState>& state,
           const WindowRows& rows)
      : form_(form),
        state_(state),
        rows_(rows),
        vocab_(model.recipe.model.vocab),
        fit_{.cap = model.recipe.model.softcap, .learning_rate = slot.lr, .steps = slot.steps},
        io_("slot inputs",
            4 * align_up(static_cast<size_t>(rows.windows * rows.head) * 4) + align_up(static_cast<size_t>(vocab_) * 4)) {
    const Spec scored{{rows.windows * rows.scored}, DType::i32};
    fitted_ = io_.make("fitted", {{rows.windows * rows.head}, DType::i32});
    targets_ = io_.make("targets", scored);
    scored_rows_ = io_.make("scored rows", scored);
    groups_ = io_.make("groups", scored);
    ones_ = io_.make("ones", {{vocab_}, DType::f32});
    std::fill_n(ones_.as<float>(), vocab_, 1.0f);
    for (int64_t row = 0; row < scored.shape[0]; ++row)
      groups_.as<int32_t>()[row] = form.shared ? 0 : static_cast<int32_t>(row / rows.scored);
  }

  ModelOutputs record(Tape& tape, Var hidden, Var table) override {
    tape.scope("slot");
    const auto of_groups = [&](const char* name, const Tensor& all) {
      return tape.input(name, all.part(0, {form_.shared ? 1 : rows_.windows, all.cols()}));
    };
    const Var offset = of_groups("offset", state_->offset), m = of_groups("m", state_->m), v = of_groups("v", state_->v);
    const Var logits = tape.one(ProjectResidual{}, {{}, hidden, table, tape.input("ones", ones_)});
    const Var taken = tape.input("taken", state_->taken), fitted = tape.input("fitted", fitted_);
    const auto fit = [&] { return tape.one(fit_, {table, offset, m, v, logits, fitted, taken}); };
    if (!form_.carried) {
      for (const Var state : {offset, m, v}) tape.call(Fill{}, {state});
      return score(tape, hidden, table, fit());
    }
    OffsetFit as_it_is = fit_;
    as_it_is.steps = 0;
    const ModelOutputs out = score(tape, hidden, table, tape.one(as_it_is, {table, offset, m, v, Var{}, Var{}, Var{}}));
    fit();
    return out;
  }

  void fill(std::span<const uint16_t> stream, int64_t i, const ScoreWindow& window, const Place& place) override {
    const auto last = static_cast<int64_t>(stream.size()) - 1;
    const auto target = [&](int64_t position) {
      return static_cast<int32_t>(stream[static_cast<size_t>(std::min(window.start + position + 1, last))]);
    };
    const FitRange range = place.repeated ? FitRange{} : form_.fitted(stream, window);
    FAIRWAY_ASSERT(range.count() == 0 || (range.from >= place.head_begin && range.to <= place.head_begin + rows_.head &&
                                          window.start + range.to <= last),
                   "an offset is fitted on rows that the head does not run on");
    for (int64_t j = 0; j < rows_.head; ++j) {
      const int64_t position = place.head_begin + j;
      fitted_.as<int32_t>()[i * rows_.head + j] = position >= range.from && position < range.to ? target(position) : -1;
    }
    for (int64_t n = 0; n < rows_.scored; ++n) {
      const int64_t position = place.scored_begin + n;
      targets_.as<int32_t>()[i * rows_.scored + n] = target(position);
      scored_rows_.as<int32_t>()[i * rows_.scored + n] = static_cast<int32_t>(i * rows_.head + position - place.head_begin);
    }
  }

  void send(Executor& executor) override {
    for (const Tensor& input : {fitted_, targets_, scored_rows_}) executor.upload(input);
  }

 private:
  ModelOutputs score(Tape& tape, Var hidden, Var table, Var shift) {
    const Var rows = tape.one(PickRows{}, {tape.input("scored rows", scored_rows_), hidden});
    const Var addition = tape.one(PickRows{}, {tape.input("groups", groups_), shift});
    const auto head =
        tape.call(SoftcapCrossEntropy{.cap = fit_.cap}, {rows, table, tape.input("targets", targets_), addition, {}});
    tape.keep(head.out.nll);
    return {.nll = head.out.nll, .logits = head.saved.logits, .lse = head.saved.lse};
  }

  SlotForm form_;
  std::shared_ptr<SlotState> state_;
  WindowRows rows_;
  int64_t vocab_;
  OffsetFit fit_;
  Arena io_;
  Tensor fitted_, targets_, scored_rows_, groups_, ones_;
};

}  // namespace

HeadMaker slot_heads(const ScoredModel& model, const SlotRecipe& slot, const SlotForm& form,
                     const std::shared_ptr<SlotState>& state) {
  return [=](const WindowRows& rows) { return std::make_unique<SlotHead>(model, slot, form, state, rows); };
}

namespace {

// Position of the last document start among the inputs up to the first scored position.
int64_t document_start(std::span<const uint16_t> stream, const ScoreWindow& window, int64_t bos) {
  for (int64_t position = window.position(); position > 0; --position)
    if (stream[static_cast<size_t>(window.start + position)] == bos) return position;
  return 0;
}

}  // namespace

FitRule fit_before_scores(const SlotRecipe& slot, int64_t bos) {
  constexpr int64_t kLeastRows = 64;
  return [slot, bos](std::span<const uint16_t> stream, const ScoreWindow& window) {
    int64_t from = std::max<int64_t>(0, window.position() - slot.positions);  // a
    if (slot.same_document) from = std::max(from, document_start(stream, window, bos));
    return window.position() - from < kLeastRows ? FitRange{} : FitRange{from, window.position()};
  };
}

WindowShape with_offsets(WindowShape shape, const ScoredModel& model, const ScoreRecipe& score, const SlotForm& form,
                         const std::shared_ptr<SlotState>& state) {
  if (score.mode.tilt) shape.rows = EvalRows::distributions;
  shape.before = form.carried ? 0 : std::min(score.slot.positions, score.context);
  shape.head = slot_heads(model, score.slot, form, state);
  return shape;
}

void tell_fit(ScoreLedger& ledger, const FitRange& range, const ScoreWindow& window) {
  if (range.count() > 0)
    ledger.updated(ledger.scored(window.start + range.from + 1, window.start + range.to + 1), UpdateScope::window);
}

DocumentOffsets::DocumentOffsets(const ScoredModel& model, const SlotRecipe& slot, int64_t documents)
    : vocab_(model.recipe.model.vocab),
      steps_(slot.steps),
      fit_{.cap = model.recipe.model.softcap, .learning_rate = slot.lr, .steps = slot.steps},
      state_(documents, model.recipe.model.dim) {}

void DocumentOffsets::record_begin(Tape& tape) const {
  for (const Tensor& part : {state_.offset, state_.m, state_.v}) tape.call(Fill{}, {tape.input("offset", part)});
}

void DocumentOffsets::set_chunks(int64_t before, Executor& executor) {
  *state_.taken.as<int32_t>() = static_cast<int32_t>(before * steps_);
  executor.upload(state_.taken);
}

DocumentOffsets::Part::Part(const DocumentOffsets& all, int64_t lanes, int64_t chunk)
    : all_(&all),
      lanes_(lanes),
      chunk_(chunk),
      io_("offset inputs",
          2 * align_up(static_cast<size_t>(lanes * chunk) * 4) + align_up(static_cast<size_t>(all.vocab_) * 4)) {
  fitted_ = io_.make("fitted", {{lanes * chunk}, DType::i32});
  groups_ = io_.make("groups", {{lanes * chunk}, DType::i32});
  ones_ = io_.make("ones", {{all.vocab_}, DType::f32});
  std::fill_n(ones_.as<float>(), all.vocab_, 1.0f);
  for (int64_t row = 0; row < lanes * chunk; ++row) groups_.as<int32_t>()[row] = static_cast<int32_t>(row / chunk);
}

ModelOutputs DocumentOffsets::Part::record(Tape& tape, const ModelOutputs& model, Var targets) {
  tape.scope("slot");
  const auto of_lanes = [&](const char* name, const Tensor& state) {
    return tape.input(name, state.part(0, {lanes_, state.cols()}));
  };
  const Var offset = of_lanes("offset", all_->state_.offset), m = of_lanes("m", all_->state_.m),
            v = of_lanes("v", all_->state_.v);
  OffsetFit as_it_is = all_->fit_;
  as_it_is.steps = 0;
  const Var shift = tape.one(as_it_is, {model.table, offset, m, v, Var{}, Var{}, Var{}});
  Var added = tape.one(PickRows{}, {tape.input("groups", groups_), shift});
  if (model.added) added = tape.one(Add{}, {added, model.added});
  const auto head = tape.call(SoftcapCrossEntropy{.cap = all_->fit_.cap}, {model.hidden, model.table, targets, added, {}});
  tape.keep(head.out.nll);
  const Var logits = tape.one(ProjectResidual{}, {model.added, model.hidden, model.table, tape.input("ones", ones_)});
  tape.one(all_->fit_,
           {model.table, offset, m, v, logits, tape.input("fitted", fitted_), tape.input("taken", all_->state_.taken)});
  ModelOutputs out = model;
  out.nll = head.out.nll, out.logits = head.saved.logits, out.lse = head.saved.lse;
  return out;
}

void DocumentOffsets::Part::fill(int64_t lane, std::span<const uint16_t> targets, bool repeated) {
  int32_t* const to = fitted_.as<int32_t>() + lane * chunk_;
  for (int64_t row = 0; row < chunk_; ++row) {
    const bool there = !repeated && row < static_cast<int64_t>(targets.size());
    to[row] = there ? static_cast<int32_t>(targets[static_cast<size_t>(row)]) : -1;
  }
}

void DocumentOffsets::Part::send(Executor& executor) { executor.upload(fitted_); }

}  // namespace fairway
