#include "score/window_runner.h"

#include <algorithm>

namespace fairway {
namespace {

int64_t head_rows_of(const WindowShape& shape) { return std::min(shape.context, shape.before + shape.scored); }

EvalOptions options_of(const WindowShape& shape) {
  const int64_t head = head_rows_of(shape);
  return {.head_rows = head < shape.context ? shape.batch * head : 0,
          .segments = shape.documents,
          .raw_head = shape.raw,
          .rows = shape.rows,
          .damping = shape.damping};
}

}  // namespace

WindowRunner::WindowRunner(const ScoredModel& model, const std::shared_ptr<ParamStore>& params, const WindowShape& shape,
                           const ScoreContext& context)
    : shape_(shape),
      head_(head_rows_of(shape)),
      segments_{static_cast<int32_t>(model.recipe.model.bos), shape.longest > 0 ? shape.longest : shape.context},
      model_(model.recipe, shape.batch, shape.context, model.stage, *context.executor, params, options_of(shape)) {}

int64_t WindowRunner::head_begin(const ScoreWindow& window) const {
  return head_ == shape_.context ? 0 : std::clamp<int64_t>(window.position() - shape_.before, 0, shape_.context - head_);
}

int64_t WindowRunner::row(int64_t i, const ScoreWindow& window, int64_t position) const {
  const int64_t at = position - head_begin(window);
  FAIRWAY_ASSERT(at >= 0 && at < head_, "a position that the head did not run on");
  return i * head_ + at;
}

void WindowRunner::fill(std::span<const uint16_t> stream, const TiltHints& hints, int64_t i, const ScoreWindow& window) {
  const auto last = static_cast<int64_t>(stream.size()) - 1;  // T: the last token is a target only
  const int64_t length = shape_.context, begin = head_begin(window);
  const auto token = [&](int64_t at) { return at <= last ? static_cast<int32_t>(stream[static_cast<size_t>(at)]) : 0; };
  for (int64_t j = 0; j < length; ++j) {
    const int64_t at = window.start + j;
    model_.tokens()[static_cast<size_t>(i * length + j)] = at < last ? token(at) : 0;  // padded with token 0
  }
  for (int64_t j = 0; j < head_ && !shape_.raw; ++j)
    model_.targets()[static_cast<size_t>(i * head_ + j)] = token(window.start + begin + j + 1);
  for (int64_t j = 0; j < head_ && tilts(); ++j) {
    const int64_t target = window.start + begin + j + 1;
    model_.set_hint(i * head_ + j, target <= last ? hints.of(target).hint : Hint{});
  }
  for (int64_t j = 0; j < head_ && head_ < length; ++j)
    model_.head_rows()[static_cast<size_t>(i * head_ + j)] = static_cast<int32_t>(i * length + begin + j);
}

void WindowRunner::run(std::span<const uint16_t> stream, const TiltHints& hints, std::span<const ScoreWindow> windows,
                       EvalRecords& to) {
  FAIRWAY_ASSERT(!windows.empty() && static_cast<int64_t>(windows.size()) <= shape_.batch, "more windows than a batch holds");
  for (int64_t i = 0; i < shape_.batch; ++i)  // a batch that is not full repeats its last window; nobody reads those rows
    fill(stream, hints, i, windows[std::min(static_cast<size_t>(i), windows.size() - 1)]);
  if (shape_.documents) segment_starts(model_.tokens(), shape_.context, segments_, model_.segment_start());
  tells_distributions() ? model_.run() : model_.run(to);
}

}  // namespace fairway
