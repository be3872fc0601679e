// Rows of validation tokens through the model, plain: the first N·T tokens as N rows that know nothing of one another (scoring
// spec §2.1), a few at once.
#pragma once

#include <functional>
#include <memory>

#include "analysis/progress.h"
#include "score/eval_model.h"

namespace fairway {

// What is looked at: weights, and tokens whose successors are the targets.
struct AnalysisInput {
  const Recipe& recipe;
  ModelStage stage;
  std::shared_ptr<ParamStore> weights;
  std::span<const uint16_t> stream;  // N·T + 1
  int64_t row_length = 0;            // T
  Executor& executor;
  ThreadPool& pool;
  AnalysisProgress progress{};

  int64_t rows() const { return (static_cast<int64_t>(stream.size()) - 1) / row_length; }  // N
  int64_t targets() const { return rows() * row_length; }
};

class TokenRows {
 public:
  explicit TokenRows(const AnalysisInput& input);

  // After each batch: `use(first, count)`, with rows first … first + count − 1 in places 0 … count − 1 of the model. The
  // observer is told every point of the batch before that; rows from count · T on are repeats to be left alone.
  void each(const std::function<void(int64_t first, int64_t count)>& use, const Observer& observer = {});
  int64_t count() const { return count_; }  // of the batch that is running: what an observer may read
  int64_t first() const { return first_; }
  const EvalModel& model() const { return model_; }
  std::span<const int32_t> targets() const { return model_.targets(); }

 private:
  void fill(int64_t place, int64_t row);
  const AnalysisInput* input_;
  EvalModel model_;
  int64_t first_ = 0, count_ = 0;
};

// Points are told by layer; this is the number in "layer7.q", or −1 when the point is not called layer<i>.<suffix>.
int64_t layer_of_point(std::string_view point, std::string_view suffix);

}  // namespace fairway
