// One forward and backward pass against stored loss, logits, hidden states and gradients.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/tape.h"
#include "backends/backends.h"
#include "base/error.h"
#include "golden/case_file.h"
#include "model/model.h"
#include "recipe/segments.h"

namespace fairway::golden {
namespace {

void check_tokens(const Safetensors& file, const char* name, int64_t vocab) {
  const Tensor tokens = file.get(name);
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

double expected_loss(const Safetensors& file, Metadata& meta) {
  const Tensor loss = file.get("loss");
  if (loss.spec != Spec{{1}, DType::f32}) throw InputError(file.name() + ": loss is not f32 [1]");
  return meta.has("loss_f64") ? meta.number("loss_f64") : static_cast<double>(*loss.as<float>());
}

void compare_gradients(const Safetensors& file, const ParamStore& params, CaseResult& result) {
  for (const ParamBank& bank : params.banks()) {
    const Tensor want = file.get("grad." + bank.info.name);
    if (want.spec != bank.grad.spec)
      throw InputError(file.name() + ": grad." + bank.info.name + " differs in shape from its parameter");
    const double limit = want.numel() == 1 ? result.limits.scalar : result.limits.gradient;
    result.gradients.push_back({bank.info.name, relative_error(bank.grad.as<float>(), want), limit});
  }
}

// The case's rows as the model reads them. Rows are independent: each has positions and segments of its own.
struct CaseInputs {
  CaseInputs(const Recipe& recipe, const Tensor& tokens, const Tensor& targets)
      : io("inputs", static_cast<size_t>(3 * tokens.numel() + tokens.dim(1) * recipe.model.rope.dims + 128) * sizeof(float)) {
    const Spec indices{{tokens.numel()}, DType::i32};
    model.row_length = tokens.dim(1);
    model.tokens = io.make("tokens", indices);
    model.targets = io.make("targets", indices);
    std::memcpy(model.tokens.data, tokens.data, tokens.spec.bytes());
    std::memcpy(model.targets.data, targets.data, targets.spec.bytes());
    if (packs_documents(recipe)) {
      model.segment_start = io.make("segment_start", indices);
      const auto count = static_cast<size_t>(tokens.numel());
      segment_starts({tokens.as<int32_t>(), count}, model.row_length,
                     {static_cast<int32_t>(recipe.model.bos), recipe.data.max_segment},
                     {model.segment_start.as<int32_t>(), count});
    }
    model.rope = io.make("rope", {rope_shape(recipe, model.row_length), DType::f32});
    model.loss_gradient = io.make("loss gradient", {{1}, DType::f32});
    *model.loss_gradient.as<float>() = 1;
    fill_rope(recipe, model.rope);
  }
  Arena io;
  ModelInputs model;
};

// One pass of the case, its errors and the bounds that need nothing else.
CaseResult compare_once(const Safetensors& file, Executor& executor) {
  Metadata meta(file);
  if (!file.has("tokens") || !file.has("targets"))
    throw InputError(file.name() + ": not a golden case: it has no tokens and targets");
  const Tensor tokens = file.get("tokens"), targets = file.get("targets");
  if (tokens.spec.dtype != DType::i32 || tokens.spec.shape.rank != 2 || tokens.numel() == 0)
    throw InputError(file.name() + ": tokens is not i32 [B, T] with at least one token");
  if (tokens.spec != targets.spec) throw InputError(file.name() + ": tokens and targets differ in shape or type");
  const Recipe recipe = recipe_of(file, meta, "param.", {tokens.dim(0), tokens.dim(1)});
  validate(recipe, file.name());
  check_tokens(file, "tokens", recipe.model.vocab);
  check_tokens(file, "targets", recipe.model.vocab);
  CaseResult result{.loss_expected = expected_loss(file, meta), .limits = tolerances_of(executor.backend())};
  const ModelStage stage{.looped = looped(file, meta, recipe)};
  meta.refuse_unread();

  ParamStore params(parameter_table(recipe), ParamStore::Gradients::kept);
  load_params(file, "param.", params);
  const CaseInputs inputs(recipe, tokens, targets);
  Tape tape;
  const ModelOutputs outputs = build_model(tape, recipe, params, inputs.model, stage);
  if (file.has("logits")) tape.keep(outputs.logits);
  const Var gradient = tape.input("loss gradient", inputs.model.loss_gradient);
  const std::unique_ptr<Session> session = executor.open(std::move(tape).finish(outputs.loss, gradient));
  session->run(StateWatcher(file, result));
  result.loss = static_cast<double>(*session->fetch(outputs.loss.id).as<float>());
  executor.download(params.flat_grads());
  result.loss_error = relative_error(result.loss, result.loss_expected);
  compare_gradients(file, params, result);
  return result;
}

bool within(const CaseResult& r) {
  return r.loss_error <= r.limits.loss && worst_of(r.gradients).held() && r.logits_error <= r.limits.state &&
         r.hidden_error <= r.limits.state;
}

// How much a case's gradients make of rounding is seen in float, where that is right to begin with. A number that nearly
// cancels may come out well by chance, so it is the worse of two ways to round.
void widen_where_gradients_cancel(const Safetensors& file, CaseResult& result) {
  Queue queue(1);
  double tensors = 0, scalars = 0;
  for (const Backend backend : {Backend::ref, Backend::cpu}) {
    const CaseResult in_float = compare_once(file, *make_executor(backend, queue));
    if (!within(in_float)) return;
    for (const TensorError& gradient : in_float.gradients) {
      double& worst = gradient.limit == in_float.limits.scalar ? scalars : tensors;
      worst = std::max(worst, gradient.error);
    }
  }
  for (TensorError& gradient : result.gradients) {
    const double worst = gradient.limit == result.limits.scalar ? scalars : tensors;
    gradient.limit = std::max(gradient.limit, result.limits.over_float * worst);
  }
}

}  // namespace

CaseResult run_case(const Safetensors& file, Executor& executor) {
  CaseResult r = compare_once(file, executor);
  if (r.limits.over_float > 0) widen_where_gradients_cancel(file, r);
  r.held = within(r);
  return r;
}

}  // namespace fairway::golden
