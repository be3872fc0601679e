#include "analysis/token_rows.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kTokensAtOnce = 2048;

int64_t rows_at_once(const AnalysisInput& input) {
  return std::clamp<int64_t>(kTokensAtOnce / input.row_length, 1, std::max<int64_t>(input.rows(), 1));
}

}  // namespace

TokenRows::TokenRows(const AnalysisInput& input)
    : input_(&input), model_(input.recipe, rows_at_once(input), input.row_length, input.stage, input.executor, input.weights) {
  FAIRWAY_ASSERT(input.rows() > 0, "an analysis of no rows");
}

void TokenRows::fill(int64_t place, int64_t row) {
  const int64_t length = input_->row_length;
  for (int64_t t = 0; t < length; ++t) {
    const auto to = static_cast<size_t>(place * length + t), from = static_cast<size_t>(row * length + t);
    model_.tokens()[to] = input_->stream[from];
    model_.targets()[to] = input_->stream[from + 1];
  }
}

void TokenRows::each(const std::function<void(int64_t, int64_t)>& use, const Observer& observer) {
  const int64_t rows = input_->rows();
  for (first_ = 0; first_ < rows; first_ += count_) {
    count_ = std::min(model_.rows(), rows - first_);
    for (int64_t place = 0; place < model_.rows(); ++place) fill(place, first_ + std::min(place, count_ - 1));
    if (observer)
      model_.run(observer);
    else
      model_.run();
    use(first_, count_);
    if (input_->progress) input_->progress((first_ + count_) * input_->row_length, input_->targets());
  }
}

int64_t layer_of_point(std::string_view point, std::string_view suffix) {
  constexpr std::string_view kLayer = "layer";
  if (!point.starts_with(kLayer) || !point.ends_with(suffix)) return -1;
  point.remove_prefix(kLayer.size());
  int64_t layer = -1;
  const auto [end, error] = std::from_chars(point.data(), point.data() + point.size(), layer);
  return error == std::errc{} && std::string_view(end, point.data() + point.size()) == suffix ? layer : -1;
}

}  // namespace fairway
