#include "pack/gradient_moments.h"

#include <algorithm>

#include "base/error.h"
#include "quant/tensor_plan.h"

namespace fairway {
namespace {

// The training program on one sequence; gradients of the mean loss.
class SequenceGradient {
 public:
  SequenceGradient(const CalibrationModel& model, int64_t length)
      : model_(model),
        length_(length),
        params_(parameter_table(model.recipe), ParamStore::Gradients::kept),
        io_("gradient inputs", static_cast<size_t>(2 * length + length * model.recipe.model.rope.dims) * 4 + 4096) {
    params_.set_values(model.weights.flat_values());
    const Spec indices{{length}, DType::i32};
    inputs_.tokens = io_.make("tokens", indices);
    inputs_.targets = io_.make("targets", indices);
    inputs_.rope = io_.make("rope", {rope_shape(model.recipe, length), DType::f32});
    inputs_.loss_gradient = io_.make("loss gradient", {{1}, DType::f32});
    inputs_.row_length = length;
    fill_rope(model.recipe, inputs_.rope);
    *inputs_.loss_gradient.as<float>() = 1;
    Tape tape;
    const ModelOutputs outputs = build_model(tape, model.recipe, params_, inputs_, model.stage);
    const Var gradient = tape.input("loss gradient", inputs_.loss_gradient);
    session_ = model.executor.open(std::move(tape).finish(outputs.loss, gradient));
  }
  const ParamStore& params() const { return params_; }

  // length + 1 tokens; the gradients in params() are theirs afterwards.
  void run(std::span<const int32_t> tokens) {
    std::copy_n(tokens.begin(), length_, inputs_.tokens.as<int32_t>());
    std::copy_n(tokens.begin() + 1, length_, inputs_.targets.as<int32_t>());
    const Tensor grads = params_.flat_grads();
    std::memset(grads.data, 0, grads.spec.bytes());
    for (const Tensor& input : {inputs_.tokens, inputs_.targets, grads}) model_.executor.upload(input);
    session_->run();
    model_.executor.download(grads);
  }

 private:
  const CalibrationModel& model_;
  int64_t length_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  std::unique_ptr<Session> session_;
};

double squares(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return sum;
}

}  // namespace

TensorMoments gradient_moments(const CalibrationModel& model, std::span<const int32_t> text, int64_t length) {
  const auto sequences = static_cast<int64_t>(text.size()) / (length + 1);
  FAIRWAY_ASSERT(length > 0 && sequences > 1, "moments need two sequences");
  SequenceGradient gradient(model, length);
  const std::vector<TensorPlan> plans = tensor_plans(gradient.params(), model.recipe);
  const Tensor values = gradient.params().flat_values(), grads = gradient.params().flat_grads();
  std::vector<float> sum(static_cast<size_t>(grads.numel()));
  std::vector<double> each(plans.size()), all(plans.size());
  const auto place = [&](const TensorPlan& plan) { return plan.weight.data - values.as<float>(); };
  const auto over_plans = [&](auto&& body) {
    model.site.pool().parallel_for(static_cast<int64_t>(plans.size()), [&](int64_t i) { body(static_cast<size_t>(i)); });
  };
  for (int64_t s = 0; s < sequences; ++s) {
    gradient.run(text.subspan(static_cast<size_t>(s * (length + 1)), static_cast<size_t>(length + 1)));
    over_plans([&](size_t i) {
      const float* from = grads.as<float>() + place(plans[i]);
      float* into = sum.data() + place(plans[i]);
      each[i] += squares(from, plans[i].weight.count());
      for (int64_t k = 0; k < plans[i].weight.count(); ++k) into[k] += from[k];
    });
    if (model.progress) model.progress("gradients", s + 1, sequences);
  }
  over_plans([&](size_t i) { all[i] = squares(sum.data() + place(plans[i]), plans[i].weight.count()); });
  // Unbiased variance of a sequence's mean gradient, times its tokens: that of a token's, were tokens independent.
  TensorMoments out;
  const auto n = static_cast<double>(sequences);
  for (size_t i = 0; i < plans.size(); ++i)
    out[plans[i].name()] = std::max(0.0, (each[i] - all[i] / n) / (n - 1)) * static_cast<double>(length);
  return out;
}

}  // namespace fairway
