// What the blocks share while a model is recorded: the tape, the recipe, and parameters as Vars.
#pragma once

#include <map>

#include "model/model.h"

namespace fairway {

class BuildContext {
 public:
  BuildContext(Tape& tape, const Recipe& recipe, const ParamStore& params, const ModelInputs& inputs, ModelStage stage);

  Tape& tape() { return *tape_; }
  const ModelRecipe& model() const { return recipe_->model; }
  const ModelInputs& inputs() const { return *inputs_; }

  Var param(ParamId id);                 // the whole tensor
  Var param(ParamId id, int64_t index);  // one slice of its first axis
  // A matrix of a bank; seen through fake quantization where the stage asks for it.
  Var matrix(ParamId bank, int64_t index);
  double layer_scale(int64_t layer) const;  // λ_i = 1/√(i+1)
  // From the last pass's attention on, only the rows that the head asks for go on (all of them unless it names some).
  void begin_pass(int64_t pass, bool last);
  Var narrow(Var rows);  // (M, C) → (N, C)
  // base + gain⊙(what the pass's adapter makes of x), or base where the site has none; without gain it is ones.
  Var adapted(Var base, Var x, Var gain, AdapterSite site);
  bool has_adapter(AdapterSite site) const { return inputs_->adapters && has(inputs_->adapters->sites, site); }

  Var tokens, targets, segment_start, segment_tiles, rope;
  Var x0;           // the stream after the embedding, mixed into every block
  Var value_embed;  // (M, K·E), shared by the layers that use it

 private:
  Var adapter(AdapterSite site, AdapterFactor factor);
  FakeQuant grid_of(ParamId bank) const;
  Tape* tape_;
  const Recipe* recipe_;
  const ParamStore* params_;
  const ModelInputs* inputs_;
  ModelStage stage_;
  Var head_rows_;
  bool narrowed_ = false;
  int64_t adapter_pass_ = 0;
  std::map<std::pair<ParamId, int64_t>, Var> quantized_;
};

}  // namespace fairway
