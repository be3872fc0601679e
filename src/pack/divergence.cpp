#include "pack/divergence.h"

#include <algorithm>
#include <cmath>

#include "autograd/passes.h"
#include "base/error.h"
#include "quant/quantize_model.h"

namespace fairway {

KlDivergence::KlDivergence(const CalibrationModel& model, std::span<const int32_t> text, int64_t length, int64_t measured)
    : executor_(model.executor),
      recipe_(model.recipe),
      stage_(model.stage),
      rows_(static_cast<int64_t>(text.size()) / (length + 1)),
      measured_(measured),
      length_(length),
      text_(text.begin(), text.end()),
      params_(parameter_table(model.recipe), ParamStore::Gradients::kept),
      io_("divergence inputs",
          static_cast<size_t>(length * (kTogether * (2 + model.recipe.model.vocab) + model.recipe.model.rope.dims)) * 4 +
              8 * kArenaAlignment) {
  FAIRWAY_ASSERT(measured > 0 && measured <= rows_ && measured % kTogether == 0 && rows_ % kTogether == 0,
                 "rows are whole passes");
  const int64_t tokens = kTogether * length, vocab = recipe_.model.vocab;
  inputs_.tokens = io_.make("tokens", {{tokens}, DType::i32});
  inputs_.targets = io_.make("targets", {{tokens}, DType::i32});
  inputs_.expected = io_.make("expected", {{tokens, vocab}, DType::f32});
  inputs_.rope = io_.make("rope", {rope_shape(recipe_, length), DType::f32});
  inputs_.loss_gradient = io_.make("loss gradient", {{1}, DType::f32});
  inputs_.row_length = length;
  fill_rope(recipe_, inputs_.rope);
  *inputs_.loss_gradient.as<float>() = 1;
  params_.set_values(model.weights.flat_values());
  executor_.upload(params_.flat_values());
  forward_ = open(false);
  expected_.resize(static_cast<size_t>(rows_ * length * vocab));
  for (int64_t first = 0; first < rows_; first += kTogether) {
    expect(first);
    if (model.progress) model.progress("predictions", first + kTogether, rows_);
  }
}

std::unique_ptr<Session> KlDivergence::open(bool backward) {
  Tape tape;
  const ModelOutputs outputs = build_model(tape, recipe_, params_, inputs_, stage_);
  if (!backward) {
    tape.keep(outputs.logits);
    logits_ = outputs.logits.id;
    loss_ = outputs.loss.id;
    return executor_.open(std::move(tape).finish());
  }
  loss_with_gradient_ = outputs.loss.id;
  const Var gradient = tape.input("loss gradient", inputs_.loss_gradient);
  Recording recording = std::move(tape).finish(outputs.loss, gradient);
  overwrite_gradients(recording.program);
  const Tensor grads = params_.flat_grads();
  std::memset(grads.data, 0, grads.spec.bytes());  // of what nothing depends on they stay so
  executor_.upload(grads);
  return executor_.open(std::move(recording));
}

void KlDivergence::fill(int64_t first) {
  for (int64_t r = 0; r < kTogether; ++r) {
    const int32_t* row = text_.data() + (first + r) * (length_ + 1);
    std::copy_n(row, length_, inputs_.tokens.as<int32_t>() + r * length_);
    std::copy_n(row + 1, length_, inputs_.targets.as<int32_t>() + r * length_);
  }
  for (const Tensor& input : {inputs_.tokens, inputs_.targets}) executor_.upload(input);
}

void KlDivergence::expect(int64_t first) {
  fill(first);
  forward_->run();
  const Tensor logits = forward_->fetch(logits_);
  const int64_t tokens = kTogether * length_, vocab = recipe_.model.vocab;
  std::vector<double> entropies(static_cast<size_t>(tokens));
  executor_.queue().pool().parallel_for(tokens, [&](int64_t m) {
    const float* z = logits.as<float>() + m * vocab;
    float* p = expected_.data() + (first * length_ + m) * vocab;
    double highest = *std::max_element(z, z + vocab), total = 0, mean = 0;
    for (int64_t v = 0; v < vocab; ++v) total += std::exp(static_cast<double>(z[v]) - highest);
    for (int64_t v = 0; v < vocab; ++v) {
      p[v] = static_cast<float>(std::exp(static_cast<double>(z[v]) - highest) / total);
      mean += static_cast<double>(p[v]) * static_cast<double>(z[v]);
    }
    entropies[static_cast<size_t>(m)] = highest + std::log(total) - mean;
  });
  double sum = 0;
  for (const double entropy : entropies) sum += entropy;
  entropies_.push_back(sum / static_cast<double>(tokens));
}

double KlDivergence::run(Session& session, int32_t loss, int64_t first) {
  fill(first);
  executor_.fill(inputs_.expected,
                 make_view(expected_.data() + first / kTogether * inputs_.expected.numel(), inputs_.expected.spec));
  session.run();
  return static_cast<double>(*session.fetch(loss).as<float>()) - entropies_[static_cast<size_t>(first / kTogether)];
}

void KlDivergence::take(const QuantizedModel& model) {
  dequantize(model, params_, &executor_.queue().pool());
  executor_.upload(params_.flat_values());
}

double KlDivergence::of(const QuantizedModel& model) {
  take(model);
  double sum = 0;
  for (int64_t first = rows_ - measured_; first < rows_; first += kTogether) sum += run(*forward_, loss_, first);
  return sum * kTogether / static_cast<double>(measured_);
}

void KlDivergence::gradient(int64_t turn, std::span<const Tensor> of) {
  if (!both_) both_ = open(true);
  run(*both_, loss_with_gradient_, turn * kTogether % (rows_ - measured_));
  for (const Tensor& gradient : of) executor_.download(gradient);
}

void KlDivergence::changed(std::span<const Tensor> weights) {
  for (const Tensor& values : weights) executor_.upload(values);
}

}  // namespace fairway
