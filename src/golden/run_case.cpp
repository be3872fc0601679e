// One forward and backward pass against stored loss, logits, hidden states and gradients.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/tape.h"
#include "base/error.h"
#include "golden/case_file.h"
#include "model/model.h"

namespace fairway::golden {
namespace {

// What counts as right with float32 tensors; single numbers cancel and get more room.
constexpr double kLossLimit = 1e-6, kGradLimit = 1e-4, kScalarGradLimit = 5e-4, kStateLimit = 1e-4;

void check_tokens(const Safetensors& file, const char* name, int64_t vocab) {
  const Tensor tokens = file.get(name);
  if (tokens.spec.dtype != DType::i32 || tokens.spec.shape.rank != 2 || tokens.numel() == 0)
    throw InputError(file.name() + ": " + name + " is not i32 [B, T] with at least one token");
  const int32_t* ids = tokens.as<int32_t>();
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab)
      throw InputError(file.name() + ": " + name + " holds " + std::to_string(ids[i]) + ", outside of the vocabulary");
  }
}

// Compares the hidden states and the logits as they are made.
class StateWatcher {
 public:
  StateWatcher(const Safetensors& file, CaseResult& result) : file_(file), result_(result) {}
  void operator()(std::string_view name, const Tensor& value) {
    if (name == "logits" && file_.has("logits")) compare(value, file_.get("logits"), result_.logits_error);
    if (!name.ends_with(".out") || !file_.has("hidden")) return;
    const Tensor hidden = file_.get("hidden");
    if (next_ < hidden.dim(0)) compare(value, hidden.slice(next_++), result_.hidden_error);
  }

 private:
  void compare(const Tensor& have, const Tensor& want, double& worst) {
    if (have.numel() != want.numel() || want.spec.dtype != DType::f32)
      throw InputError(file_.name() + ": a stored state has " + want.spec.shape.text() + ", the model's is " +
                       have.spec.shape.text());
    worst = std::max(worst, relative_error(have.as<float>(), want));
  }
  const Safetensors& file_;
  CaseResult& result_;
  int64_t next_ = 0;
};

double expected_loss(const Safetensors& file) {
  const Tensor loss = file.get("loss");
  if (loss.spec != Spec{{1}, DType::f32}) throw InputError(file.name() + ": loss is not f32 [1]");
  return number_or(file, "loss_f64", static_cast<double>(*loss.as<float>()));
}

void compare_gradients(const Safetensors& file, const ParamStore& params, CaseResult& result) {
  for (const ParamBank& bank : params.banks()) {
    const Tensor want = file.get("grad." + bank.info.name);
    if (want.spec != bank.grad.spec)
      throw InputError(file.name() + ": grad." + bank.info.name + " has another shape than its parameter");
    const double limit = want.numel() == 1 ? kScalarGradLimit : kGradLimit;
    const double error = relative_error(bank.grad.as<float>(), want) * (kGradLimit / limit);
    if (!(error <= result.worst_grad)) {
      result.worst_grad = error;
      result.worst_grad_name = bank.info.name;
    }
  }
}

}  // namespace

CaseResult run_case(const Safetensors& file, Executor& executor) {
  Recipe recipe = recipe_of(file, "param.");
  check_tokens(file, "tokens", recipe.model.vocab);
  check_tokens(file, "targets", recipe.model.vocab);
  const Tensor tokens = file.get("tokens"), targets = file.get("targets");
  if (tokens.spec != targets.spec) throw InputError(file.name() + ": tokens and targets differ in shape");
  const int64_t rows = tokens.numel(), length = tokens.dim(1);
  recipe.data.seq_len = length;
  recipe.train = {.batch_tokens = rows, .micro_batch_tokens = rows, .emulated_world = 1, .steps = 1};
  validate(recipe, file.name());

  ParamStore params(parameter_table(recipe), ParamStore::Gradients::kept);
  load_params(file, "param.", params);
  Arena io("inputs", static_cast<size_t>(2 * rows + length * recipe.model.rope.dims + 96) * sizeof(float));
  ModelInputs inputs{.row_length = length};
  inputs.tokens = io.make("tokens", {{rows}, DType::i32});
  inputs.targets = io.make("targets", {{rows}, DType::i32});
  std::memcpy(inputs.tokens.data, tokens.data, tokens.spec.bytes());
  std::memcpy(inputs.targets.data, targets.data, targets.spec.bytes());
  inputs.rope = io.make("rope", {rope_shape(recipe, length), DType::f32});
  inputs.loss_gradient = io.make("loss gradient", {{1}, DType::f32});
  *inputs.loss_gradient.as<float>() = 1;
  fill_rope(recipe, inputs.rope);

  Tape tape;
  const ModelOutputs outputs = build_model(tape, recipe, params, inputs, {.looped = looped(file, recipe)});
  const Var gradient = tape.input("loss gradient", inputs.loss_gradient);
  const BoundProgram program(std::move(tape).finish(outputs.loss, gradient));
  CaseResult result;
  executor.run(program, StateWatcher(file, result));
  result.loss = static_cast<double>(*executor.fetch(program, outputs.loss.id).as<float>());
  executor.to_host(params.flat_grads());
  result.loss_expected = expected_loss(file);
  result.loss_error = relative_error(result.loss, result.loss_expected);
  compare_gradients(file, params, result);
  result.held = result.loss_error <= kLossLimit && result.worst_grad <= kGradLimit && result.logits_error <= kStateLimit &&
                result.hidden_error <= kStateLimit;
  return result;
}

}  // namespace fairway::golden
