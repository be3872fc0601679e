#include "analysis/head_scores.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kPanel = 16;  // keys that are multiplied together, side by side in memory

struct Sums {  // of one head over rows of tokens
  double previous = 0, first = 0, self = 0, entropy = 0, induction = 0, classical = 0;
  std::array<double, 5> offsets{};

  void add(const Sums& other) {
    previous += other.previous;
    first += other.first;
    self += other.self;
    entropy += other.entropy;
    induction += other.induction;
    classical += other.classical;
    for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += other.offsets[k];
  }
};

// For each position the last one before it with the same token; −1: none.
std::vector<int32_t> earlier_occurrences(std::span<const int32_t> tokens, int64_t vocab) {
  std::vector<int32_t> last(static_cast<size_t>(vocab), -1), earlier;
  for (size_t t = 0; t < tokens.size(); ++t) {
    int32_t& seen = last[static_cast<size_t>(tokens[t])];
    earlier.push_back(seen);
    seen = static_cast<int32_t>(t);
  }
  return earlier;
}

// Sum over the earlier occurrences j of the token at `of` of a[j + 1].
double after_occurrences(const std::vector<int32_t>& earlier, int64_t of, const float* attention) {
  double sum = 0;
  for (int32_t j = earlier[static_cast<size_t>(of)]; j >= 0; j = earlier[static_cast<size_t>(j)])
    sum += static_cast<double>(attention[j + 1]);
  return sum;
}

// Attention of one head over one row of T tokens, a query at a time.
class HeadRow {
 public:
  HeadRow(int64_t length, int64_t head_dim)
      : length_(length),
        head_dim_(head_dim),
        panels_(static_cast<size_t>((length + kPanel - 1) / kPanel * kPanel * head_dim)),
        scores_(static_cast<size_t>((length + kPanel - 1) / kPanel * kPanel)) {}

  // keys: (T, E) with rows `pitch` apart, as (panel, E, 16).
  void load_keys(const float* keys, int64_t pitch) {
    for (int64_t t = 0; t < length_; ++t)
      for (int64_t e = 0; e < head_dim_; ++e)
        panels_[static_cast<size_t>((t / kPanel * head_dim_ + e) * kPanel + t % kPanel)] = keys[t * pitch + e];
  }

  // Softmax over the keys 0 … t; returns its entropy.
  double attend(const float* query, int64_t t, float scale) {
    for (int64_t panel = 0; panel * kPanel <= t; ++panel) multiply(query, panel, scale);
    const float largest = *std::max_element(scores_.begin(), scores_.begin() + t + 1);
    double sum = 0, weighted = 0;
    for (int64_t j = 0; j <= t; ++j) {
      float& score = scores_[static_cast<size_t>(j)];
      const float shifted = score - largest;
      score = std::exp(shifted);
      sum += static_cast<double>(score);
      weighted += static_cast<double>(score) * static_cast<double>(shifted);
    }
    const auto share = static_cast<float>(1 / sum);
    for (int64_t j = 0; j <= t; ++j) scores_[static_cast<size_t>(j)] *= share;
    return std::log(sum) - weighted / sum;
  }
  const float* probabilities() const { return scores_.data(); }

 private:
  void multiply(const float* query, int64_t panel, float scale) {
    std::array<float, kPanel> sums{};
    const float* keys = panels_.data() + panel * head_dim_ * kPanel;
    for (int64_t e = 0; e < head_dim_; ++e)
      for (size_t k = 0; k < kPanel; ++k) sums[k] += query[e] * keys[e * kPanel + static_cast<int64_t>(k)];
    for (size_t k = 0; k < kPanel; ++k) scores_[static_cast<size_t>(panel * kPanel) + k] = sums[k] * scale;
  }

  int64_t length_, head_dim_;
  std::vector<float> panels_, scores_;
};

Sums sums_of_row(HeadRow& row, const float* queries, int64_t pitch, int64_t length, float scale,
                 const std::vector<int32_t>& earlier) {
  Sums sums;
  for (int64_t t = 0; t < length; ++t) {
    sums.entropy += row.attend(queries + t * pitch, t, scale);
    const float* a = row.probabilities();
    sums.first += static_cast<double>(a[0]);
    sums.self += static_cast<double>(a[t]);
    for (int64_t k = 1; k <= std::min<int64_t>(t, 5); ++k)
      sums.offsets[static_cast<size_t>(k - 1)] += static_cast<double>(a[t - k]);
    if (t > 0) sums.induction += after_occurrences(earlier, t - 1, a);
    sums.classical += after_occurrences(earlier, t, a);
  }
  sums.previous = sums.offsets[0];
  return sums;
}

// Pairs that the two induction scores are means over.
struct PairCounts {
  double published = 0, classical = 0;
};

class HeadMeter {
 public:
  explicit HeadMeter(const AnalysisInput& input) : input_(&input), rows_(input) {
    const LayerOrder order = layer_order(input.recipe.model, input.stage.looped);
    std::vector<int64_t> passes(static_cast<size_t>(input.recipe.model.layers), 0);
    for (const int64_t layer : order.layers)
      for (int64_t head = 0, pass = passes[static_cast<size_t>(layer)]++; head < input.recipe.model.heads; ++head)
        scores_.push_back({.layer = layer, .pass = pass, .head = head});
    sums_.resize(scores_.size());
  }

  std::vector<HeadScore> run() {
    rows_.each([this](int64_t, int64_t) { at_ = 0; },
               [this](std::string_view point, const Tensor& value) { observe(point, value); });
    finish();
    return std::move(scores_);
  }

 private:
  void observe(std::string_view point, const Tensor& value) {
    if (at_ == 0 && layer_of_point(point, ".q") >= 0) begin_batch();
    if (layer_of_point(point, ".q") >= 0) {
      queries_.assign(value.as<float>(), value.as<float>() + value.numel());  // until the keys come
    } else if (layer_of_point(point, ".k") >= 0) {
      add_layer(value.as<float>());
      at_ += static_cast<size_t>(input_->recipe.model.heads);
    }
  }

  void begin_batch() {
    const int64_t length = input_->row_length;
    earlier_.clear();
    for (int64_t i = 0; i < rows_.count(); ++i) {
      const auto tokens = rows_.model().tokens().subspan(static_cast<size_t>(i * length), static_cast<size_t>(length));
      earlier_.push_back(earlier_occurrences(tokens, input_->recipe.model.vocab));
      count_pairs(earlier_.back());
    }
  }

  void count_pairs(const std::vector<int32_t>& earlier) {
    std::vector<double> occurrences(earlier.size(), 0);
    for (size_t t = 0; t < earlier.size(); ++t) {
      if (earlier[t] >= 0) occurrences[t] = occurrences[static_cast<size_t>(earlier[t])] + 1;
      pairs_.classical += occurrences[t];
      if (t > 0) pairs_.published += occurrences[t - 1];
    }
  }

  // Every (row, head) on its own, then added in order: the same bits for any number of threads.
  void add_layer(const float* keys) {
    const ModelRecipe& m = input_->recipe.model;
    const int64_t length = input_->row_length, size = m.head_dim(), heads = m.heads;
    const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(size)));
    std::vector<Sums> parts(static_cast<size_t>(rows_.count() * heads));
    input_->pool.parallel_for(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const int64_t row = i / heads, head = i % heads, kv = head / (heads / m.kv_heads);
      HeadRow work(length, size);
      work.load_keys(keys + row * length * m.kv_dim() + kv * size, m.kv_dim());
      parts[static_cast<size_t>(i)] = sums_of_row(work, queries_.data() + row * length * m.dim + head * size, m.dim, length,
                                                  scale, earlier_[static_cast<size_t>(row)]);
    });
    for (size_t i = 0; i < parts.size(); ++i) sums_[at_ + i % static_cast<size_t>(heads)].add(parts[i]);
  }

  void finish() {
    const auto rows = static_cast<double>(input_->rows()), length = static_cast<double>(input_->row_length);
    const auto ratio = [](double sum, double count) { return count > 0 ? sum / count : 0; };
    for (size_t i = 0; i < scores_.size(); ++i) {
      HeadScore& score = scores_[i];
      const Sums& sums = sums_[i];
      score.previous = ratio(sums.previous, rows * (length - 1));
      score.first = sums.first / (rows * length);
      score.self = sums.self / (rows * length);
      score.entropy = sums.entropy / (rows * length);
      for (size_t k = 0; k < score.offsets.size(); ++k)
        score.offsets[k] = ratio(sums.offsets[k], rows * (length - static_cast<double>(k + 1)));
      score.induction = ratio(sums.induction, pairs_.published);
      score.induction_classical = ratio(sums.classical, pairs_.classical);
    }
  }

  const AnalysisInput* input_;
  TokenRows rows_;
  std::vector<HeadScore> scores_;
  std::vector<Sums> sums_;
  std::vector<float> queries_;
  std::vector<std::vector<int32_t>> earlier_;  // of each row of the batch
  PairCounts pairs_;
  size_t at_ = 0;  // the pass's first head
};

}  // namespace

const char* name_of(HeadClass head) {
  constexpr std::array kNames{"induction", "previous", "positional", "other"};
  return kNames[static_cast<size_t>(head)];
}

HeadClass HeadScore::by(double induction_score) const {
  if (induction_score > kInductionLeast) return HeadClass::induction;
  if (previous > kPreviousLeast) return HeadClass::previous;
  return first > kPositionalLeast ? HeadClass::positional : HeadClass::other;
}

std::vector<HeadScore> measure_heads(const AnalysisInput& input) { return HeadMeter(input).run(); }

}  // namespace fairway
