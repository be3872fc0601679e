#include "optim/record_update.h"

#include "ops/newton_schulz.h"

namespace fairway {
namespace {

NewtonSchulz newton_schulz_of(const MatrixRecipe& rule) {
  NewtonSchulz op = newton_schulz_rule(name_of(rule.newton_schulz));
  op.aol = rule.aol;
  op.post_norm_rows = rule.post_norm != PostNorm::none;
  op.post_norm_columns = rule.post_norm == PostNorm::rows_columns;
  return op;
}

Var optional_input(Tape& tape, std::string_view name, const Tensor& tensor) {
  return tensor ? tape.input(name, tensor) : Var{};
}

}  // namespace

void record_adamw(Tape& tape, const OptimRecipe& recipe, const ParamBank& bank, const Tensor& gradient, const AdamState& state,
                  const UpdateInputs& inputs) {
  const std::string& name = bank.info.name;
  const bool table = bank.info.role == ParamRole::token;
  const AdamRecipe& rule = table ? recipe.token : recipe.scalar;
  const Var value = tape.input(name, bank.value), m = tape.input("m " + name, state.m), v = tape.input("v " + name, state.v);
  tape.call(
      AdamWUpdate{.learning_rate = rule.lr, .weight_decay = rule.wd, .beta1 = rule.beta1, .beta2 = rule.beta2, .eps = rule.eps},
      {value, tape.input("d " + name, gradient), m, v, optional_input(tape, "clip", inputs.clip),
       tape.input("scalars", inputs.scalars)});
  if (!table || recipe.token_precision == Precision::f32) return;
  for (Var kept : {value, m, v}) record_rounding(tape, kept);
}

void record_rounding(Tape& tape, Var tensor) {
  tape.call(AccumulateScaled{.overwrite = true, .round = true}, {tensor, tensor, Var{}});
}

Var record_muon_update(Tape& tape, const OptimRecipe& recipe, const std::string& name, const Tensor& gradient,
                       const Tensor& momentum, const UpdateInputs& inputs) {
  const Var kept = tape.input("momentum " + name, momentum);
  const Var u = tape.one(MuonMomentum{.row_norm = recipe.matrix.row_norm},
                         {tape.input("d " + name, gradient), kept, optional_input(tape, "clip", inputs.clip),
                          tape.input("scalars", inputs.scalars)});
  if (recipe.momentum_precision == Precision::bf16) record_rounding(tape, kept);
  return tape.one(newton_schulz_of(recipe.matrix), {u});
}

void record_muon_apply(Tape& tape, const MatrixRecipe& rule, const std::string& name, const Tensor& value, Var update,
                       const UpdateInputs& inputs) {
  tape.call(MuonApply{.learning_rate = rule.lr, .weight_decay = rule.wd},
            {tape.input(name, value), update, tape.input("scalars", inputs.scalars)});
}

}  // namespace fairway
