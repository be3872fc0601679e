#include "pack/gradient_moments.h"

#include <algorithm>

#include "autograd/passes.h"
#include "base/error.h"
#include "pack/output_moments.h"
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
    Recording recording = std::move(tape).finish(outputs.loss, gradient);
    overwrite_gradients(recording.program);
    session_ = model.executor.open(std::move(recording));
    const Tensor grads = params_.flat_grads();
    std::memset(grads.data, 0, grads.spec.bytes());  // of what nothing depends on they stay so
    model.executor.upload(grads);
  }
  const ParamStore& params() const { return params_; }

  // length + 1 tokens; the gradients in params() are theirs after receive(). On a device they stay there until then.
  void run(std::span<const int32_t> tokens) {
    std::copy_n(tokens.begin(), length_, inputs_.tokens.as<int32_t>());
    std::copy_n(tokens.begin() + 1, length_, inputs_.targets.as<int32_t>());
    for (const Tensor& input : {inputs_.tokens, inputs_.targets}) model_.executor.upload(input);
    session_->run();
  }
  void receive() { model_.executor.download(params_.flat_grads()); }

 private:
  const CalibrationModel& model_;
  int64_t length_;
  ParamStore params_;
  Arena io_;
  ModelInputs inputs_;
  std::unique_ptr<Session> session_;
};

// Adds the squares of each row.
void add_squares(const float* values, const MatrixView& w, std::vector<double>& rows) {
  for (int64_t row = 0; row < w.rows; ++row, values += w.cols)
    for (int64_t j = 0; j < w.cols; ++j)
      rows[static_cast<size_t>(row)] += static_cast<double>(values[j]) * static_cast<double>(values[j]);
}

// Rows that nothing touched are left out: of a table most are.
void add_products(OpRunner& runner, const float* values, const MatrixView& w, std::vector<double>& products) {
  std::vector<float> rows;
  for (int64_t row = 0; row < w.rows; ++row, values += w.cols)
    if (std::any_of(values, values + w.cols, [](float x) { return x != 0; })) rows.insert(rows.end(), values, values + w.cols);
  if (rows.empty()) return;
  runner.run(HessianAccumulate{}, {make_view(products.data(), {{w.cols, w.cols}, DType::f64}),
                                   make_view(rows.data(), {{static_cast<int64_t>(rows.size()) / w.cols, w.cols}, DType::f32})});
}

bool has_no_point(const TensorPlan& plan) { return plan.role == QuantRole::table && plan.point.empty(); }

// A few sequences say little of a row that they seldom touch, so all rows are drawn towards their mean. Of 0.1 to 4, 0.4 lost
// least on the demo at budgets from 350 to 450 KB, with 64 sequences less than with 16.
TensorMoment moment_of(const std::vector<double>& rows) {
  constexpr double kDrawn = 0.4;
  TensorMoment out;
  for (const double row : rows) out.all += row;
  if (!(out.all > 0)) return out;
  for (const double row : rows)
    out.rows.push_back(static_cast<float>((row * static_cast<double>(rows.size()) / out.all + kDrawn) / (1 + kDrawn)));
  return out;
}

}  // namespace

TensorMoments gradient_moments(const CalibrationModel& model, std::span<const int32_t> text, int64_t length,
                               const HessianStore* inputs) {
  const auto sequences = static_cast<int64_t>(text.size()) / (length + 1);
  FAIRWAY_ASSERT(length > 0 && sequences > 1, "moments need two sequences");
  SequenceGradient gradient(model, length);
  const std::vector<TensorPlan> plans = tensor_plans(gradient.params(), model.recipe);
  const Tensor values = gradient.params().flat_values(), grads = gradient.params().flat_grads();
  std::vector<float> sum(static_cast<size_t>(grads.numel()));
  std::vector<std::vector<double>> each, all, products(plans.size());
  for (const TensorPlan& plan : plans) each.emplace_back(static_cast<size_t>(plan.weight.rows));
  all = each;
  OpRunner runner(model.site);
  OutputMoments outputs(model.site, plans, inputs);
  const auto place = [&](const TensorPlan& plan) { return plan.weight.data - values.as<float>(); };
  const auto over_plans = [&](auto&& body) {
    model.site.pool().parallel_for(static_cast<int64_t>(plans.size()), [&](int64_t i) { body(static_cast<size_t>(i)); });
  };
  const auto run = [&](int64_t s) {
    if (s < sequences) gradient.run(text.subspan(static_cast<size_t>(s * (length + 1)), static_cast<size_t>(length + 1)));
  };
  const bool ahead = model.executor.on_device();  // which makes the next gradients while the host adds these
  if (ahead) run(0);
  for (int64_t s = 0; s < sequences; ++s) {
    if (!ahead) run(s);
    gradient.receive();
    if (ahead) run(s + 1);
    over_plans([&](size_t i) {
      const float* from = grads.as<float>() + place(plans[i]);
      float* into = sum.data() + place(plans[i]);
      add_squares(from, plans[i].weight, each[i]);
      for (int64_t k = 0; k < plans[i].weight.count(); ++k) into[k] += from[k];
    });
    for (size_t i = 0; i < plans.size(); ++i) {
      outputs.add(i, grads.as<float>() + place(plans[i]));
      if (!has_no_point(plans[i])) continue;
      products[i].resize(static_cast<size_t>(plans[i].weight.cols * plans[i].weight.cols));
      add_products(runner, grads.as<float>() + place(plans[i]), plans[i].weight, products[i]);
    }
    if (model.progress) model.progress("gradients", s + 1, sequences);
  }
  over_plans([&](size_t i) { add_squares(sum.data() + place(plans[i]), plans[i].weight, all[i]); });
  // Unbiased variance of a sequence's mean gradient, times its tokens: that of a token's, were tokens independent.
  TensorMoments out;
  const auto n = static_cast<double>(sequences);
  for (size_t i = 0; i < plans.size(); ++i) {
    for (size_t row = 0; row < each[i].size(); ++row)
      each[i][row] = std::max(0.0, (each[i][row] - all[i][row] / n) / (n - 1)) * static_cast<double>(length);
    TensorMoment& moment = out[plans[i].name()] = moment_of(each[i]);
    if (moment.all > 0) moment.outputs = outputs.take(i, sum.data() + place(plans[i]), n);
    if (products[i].empty() || !(moment.all > 0)) continue;
    std::vector<double> mean(products[i].size());
    add_products(runner, sum.data() + place(plans[i]), plans[i].weight, mean);
    for (size_t k = 0; k < mean.size(); ++k) products[i][k] -= mean[k] / n;
    moment.columns = symmetric(plans[i].weight.cols, std::move(products[i]));
  }
  return out;
}

}  // namespace fairway
