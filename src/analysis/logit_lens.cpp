#include "analysis/logit_lens.h"

#include <algorithm>

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

// The end of the model alone: residual stream (M, D) → loss and logits of each row.
class LensHead {
 public:
  LensHead(const AnalysisInput& input, int64_t tokens)
      : executor_(&input.executor),
        io_("lens inputs",
            align_up(static_cast<size_t>(tokens * input.recipe.model.dim) * 4) + align_up(static_cast<size_t>(tokens) * 4)) {
    stream_ = io_.make("stream", {{tokens, input.recipe.model.dim}, DType::f32});
    targets_ = io_.make("targets", {{tokens}, DType::i32});
    Tape tape;
    tape.scope("lens");
    const Var normed = tape.one(RmsNorm{}, {tape.input("stream", stream_)});
    const ParamBank& embedding = input.weights->bank(ParamId::embed_token);
    const Var table = tape.input(embedding.info.name, embedding.value);
    const auto head = tape.call(SoftcapCrossEntropy{.cap = input.recipe.model.softcap},
                                {normed, table, tape.input("targets", targets_), {}, {}});
    nll_ = head.out.nll;
    logits_ = head.saved.logits;
    tape.keep(nll_);
    tape.keep(logits_);
    session_ = executor_->open(std::move(tape).finish());
  }

  void run(std::span<const float> stream, std::span<const int32_t> targets) {
    std::copy(stream.begin(), stream.end(), stream_.as<float>());
    std::copy(targets.begin(), targets.end(), targets_.as<int32_t>());
    executor_->upload(stream_);
    executor_->upload(targets_);
    session_->run();
  }
  Tensor nll() { return session_->fetch(nll_.id); }
  Tensor logits() { return session_->fetch(logits_.id); }

 private:
  Executor* executor_;
  Arena io_;
  Tensor stream_, targets_;
  Var nll_, logits_;
  std::unique_ptr<Session> session_;
};

bool hits(const Tensor& logits, int64_t row, int32_t target) {
  const float* values = logits.as<float>() + row * logits.cols();
  return std::max_element(values, values + logits.cols()) - values == target;
}

// Residual streams of one batch, a copy for each pass over a layer.
class Streams {
 public:
  void clear() { count_ = 0; }
  size_t count() const { return count_; }
  std::span<const float> at(size_t pass) const { return kept_[pass]; }
  void observe(std::string_view point, const Tensor& value) {
    const std::span<const float> rows{value.as<float>(), static_cast<size_t>(value.numel())};
    if (layer_of_point(point, ".out") >= 0) add().assign(rows.begin(), rows.end());
    if (layer_of_point(point, ".attn_lane") >= 0) add().assign(rows.begin(), rows.end());
    if (layer_of_point(point, ".mlp_lane") < 0) return;
    std::vector<float>& lanes = kept_[count_ - 1];
    for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = 0.5F * (lanes[i] + rows[i]);
  }

 private:
  std::vector<float>& add() {
    if (kept_.size() == count_) kept_.emplace_back();
    return kept_[count_++];
  }
  std::vector<std::vector<float>> kept_;
  size_t count_ = 0;
};

}  // namespace

std::vector<LensLayer> measure_lens(const AnalysisInput& input) {
  std::vector<LensLayer> layers;
  std::vector<int64_t> passes(static_cast<size_t>(input.recipe.model.layers), 0);
  for (const int64_t layer : layer_order(input.recipe.model, input.stage.looped).layers)
    layers.push_back({.layer = layer, .pass = passes[static_cast<size_t>(layer)]++});
  TokenRows rows(input);
  LensHead head(input, rows.model().rows() * input.row_length);
  Streams streams;
  std::vector<uint8_t> right;
  rows.each(
      [&](int64_t, int64_t count) {
        FAIRWAY_ASSERT(streams.count() == layers.size(), "every pass over a layer tells its residual stream");
        for (size_t pass = 0; pass < layers.size(); ++pass) {
          head.run(streams.at(pass), rows.targets());
          const Tensor nll = head.nll(), logits = head.logits();
          right.assign(static_cast<size_t>(count * input.row_length), 0);
          input.pool.parallel_for(static_cast<int64_t>(right.size()), [&](int64_t i) {
            right[static_cast<size_t>(i)] = hits(logits, i, rows.targets()[static_cast<size_t>(i)]) ? 1 : 0;
          });
          for (size_t i = 0; i < right.size(); ++i) {
            layers[pass].loss += static_cast<double>(nll.as<float>()[i]);
            layers[pass].accuracy += right[i];
          }
        }
        streams.clear();
      },
      [&](std::string_view point, const Tensor& value) { streams.observe(point, value); });
  for (LensLayer& layer : layers) {
    layer.loss /= static_cast<double>(input.targets());
    layer.accuracy /= static_cast<double>(input.targets());
  }
  return layers;
}

}  // namespace fairway
