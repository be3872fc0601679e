#include "score/window_runner.h"

#include <algorithm>

namespace fairway {
namespace {

int64_t head_rows_of(const WindowShape& shape) { return std::min(shape.context, shape.before + shape.scored); }

EvalOptions options_of(const WindowShape& shape, WindowHead* head) {
  const int64_t rows = head_rows_of(shape);
  EvalOptions out{.head_rows = rows < shape.context ? shape.batch * rows : 0,
                  .segments = shape.documents,
                  .rows = shape.rows,
                  .damping = shape.damping};
  if (head != nullptr) out.head = [head](Tape& tape, Var hidden, Var table) { return head->record(tape, hidden, table); };
  return out;
}

}  // namespace

WindowRunner::WindowRunner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const WindowShape& shape,
                           const ScoreContext& context)
    : shape_(shape),
      head_(head_rows_of(shape)),
      segments_{static_cast<int32_t>(model.recipe.model.bos), shape.longest > 0 ? shape.longest : shape.context},
      executor_(context.executor),
      own_head_(shape.head ? shape.head({shape.batch, head_, shape.scored}) : nullptr),
      model_(model.recipe, shape.batch, shape.context, model.stage, *context.executor, params,
             options_of(shape, own_head_.get())) {}

// Where so many rows begin, `before` positions ahead of the scored ones as far as the window has them.
int64_t WindowRunner::begin_of(const ScoreWindow& window, int64_t before, int64_t rows) const {
  return std::clamp<int64_t>(window.position() - before, 0, shape_.context - rows);
}

int64_t WindowRunner::row(int64_t i, const ScoreWindow& window, int64_t position) const {
  const int64_t rows = own_head_ ? shape_.scored : head_;
  const int64_t at = position - (own_head_ ? scored_begin(window) : head_begin(window));
  FAIRWAY_ASSERT(at >= 0 && at < rows, "a position that the head did not run on");
  return i * rows + at;
}

void WindowRunner::fill(std::span<const uint16_t> stream, const TiltHints& hints, int64_t i, const ScoreWindow& window) {
  const auto last = static_cast<int64_t>(stream.size()) - 1;  // T: the last token is a target only
  const int64_t length = shape_.context, begin = head_begin(window);
  const auto token = [&](int64_t at) { return at <= last ? static_cast<int32_t>(stream[static_cast<size_t>(at)]) : 0; };
  const std::span<int32_t> tokens = model_.tokens(), targets = model_.targets(), rows = model_.head_rows();
  for (int64_t j = 0; j < length; ++j) {
    const int64_t at = window.start + j;
    tokens[static_cast<size_t>(i * length + j)] = at < last ? token(at) : 0;  // padded with token 0
  }
  for (int64_t j = 0; j < head_ && !targets.empty(); ++j)
    targets[static_cast<size_t>(i * head_ + j)] = token(window.start + begin + j + 1);
  for (int64_t j = 0; j < head_ && tilts(); ++j) {
    const int64_t target = window.start + begin + j + 1;
    model_.set_hint(i * head_ + j, target <= last ? hints.of(target).hint : Hint{});
  }
  for (int64_t j = 0; j < head_ && !rows.empty(); ++j)
    rows[static_cast<size_t>(i * head_ + j)] = static_cast<int32_t>(i * length + begin + j);
}

void WindowRunner::run(std::span<const uint16_t> stream, const TiltHints& hints, std::span<const ScoreWindow> windows,
                       EvalRecords& to) {
  const auto count = static_cast<int64_t>(windows.size());
  FAIRWAY_ASSERT(count > 0 && count <= shape_.batch, "more windows than a batch holds");
  for (int64_t i = 0; i < shape_.batch; ++i) {  // a batch that is not full repeats its last window; nobody reads those rows
    const ScoreWindow& window = windows[static_cast<size_t>(std::min(i, count - 1))];
    fill(stream, hints, i, window);
    if (own_head_) own_head_->fill(stream, i, window, {head_begin(window), scored_begin(window), i >= count});
  }
  if (own_head_) own_head_->send(*executor_);
  if (shape_.documents) segment_starts(model_.tokens(), shape_.context, segments_, model_.segment_start());
  tells_distributions() ? model_.run() : model_.run(to);
}

}  // namespace fairway
