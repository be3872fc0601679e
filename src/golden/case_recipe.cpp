// A recipe from a golden file: sizes, features and optimizer as its metadata says, kinds by the tensors that are there.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "golden/case_file.h"
#include "ops/head_output.h"
#include "ops/newton_schulz.h"

namespace fairway::golden {
namespace {

void read_sizes(Metadata& meta, ModelRecipe& m, const std::string& name) {
  m.vocab = meta.whole("VOCAB_SIZE", 2, 65536);
  m.dim = meta.whole("MODEL_DIM", 1, 16384);
  m.layers = meta.whole("NUM_LAYERS", 1, 256);
  m.heads = meta.whole("NUM_HEADS", 1, 1024);
  m.kv_heads = meta.whole("NUM_KV_HEADS", 1, 1024);
  const double hidden = meta.number("MLP_MULT") * static_cast<double>(m.dim);
  if (!(hidden >= 1 && hidden <= 65536))
    throw InputError(name + ": metadata MLP_MULT = " + meta.text("MLP_MULT") + " does not give 1 to 65536 units");
  m.mlp_hidden = static_cast<int64_t>(std::llround(hidden));
  m.softcap = meta.number("SOFTCAP", 0.01, 10000);
  m.bos = meta.whole("BOS", 0, 65535);
}

void read_features(Metadata& meta, ModelRecipe& m) {
  m.rope.dims = meta.whole("ROPE_DIMS", 0, 1024);
  m.xsa_first_layer = m.layers - meta.whole("XSA_LAST_N", 0, m.layers);
  if (m.xsa_first_layer == m.layers) m.xsa_first_layer = -1;
  if (meta.has("NUM_LOOPS")) {
    m.loop.start = meta.whole("LOOP_START", 0, m.layers - 1);
    m.loop.end = meta.whole("LOOP_END", m.loop.start, m.layers - 1);
    m.loop.count = meta.whole("NUM_LOOPS", 0, 64);
    m.rope.reference_length = 2048;  // of the looped families; the others have 1024
  }
  if (meta.has("PARALLEL_START_LAYER")) m.lanes.start = meta.whole("PARALLEL_START_LAYER", 0, m.layers);
  if (m.lanes.start >= m.layers) m.lanes.start = -1;
  if (meta.has("BIGRAM_VOCAB_SIZE")) {
    m.bigram.rows = meta.whole("BIGRAM_VOCAB_SIZE", 0, 1 << 24);
    m.bigram.dim = meta.whole("BIGRAM_DIM", 1, 16384);
  }
  if (meta.has("VE_DIM")) {
    m.value_embed.dim = meta.whole("VE_DIM", 0, 16384);
    m.value_embed.layers = meta.list("VE_LAYERS");
  }
}

void read_gates(Metadata& meta, const Safetensors& file, const std::string& prefix, ModelRecipe& m) {
  const auto has = [&](ParamId id) { return file.has(prefix + name_of(id)); };
  m.smear = has(ParamId::smear_gate) ? SmearKind::constant : has(ParamId::smear_weight) ? SmearKind::input : SmearKind::none;
  m.skip = has(ParamId::skip_gate) ? SkipKind::gated : has(ParamId::skip_weight) ? SkipKind::additive : SkipKind::none;
  m.attn_gate = has(ParamId::attn_gate) ? AttnGateKind::sparse : AttnGateKind::none;
  m.smear_bos_mask = meta.flag("SMEAR_BOS_MASK");
  if (m.smear == SmearKind::input || m.attn_gate == AttnGateKind::sparse) meta.require("GATE_WINDOW", kGateInputs);
  if (m.attn_gate == AttnGateKind::sparse) meta.require("ATTN_GATE_SCALE", HeadOutput::kGateScale);
}

NewtonSchulzSet newton_schulz(Metadata& meta, const std::string& name) {
  constexpr auto& names = EnumNames<NewtonSchulzSet>::names;
  const std::string& asked = meta.text("NEWTON_SCHULZ");
  const auto found = std::find(names.begin(), names.end(), asked);
  if (found == names.end())
    throw InputError(fmt::format("{}: metadata NEWTON_SCHULZ = {}, expected one of {}", name, asked, fmt::join(names, ", ")));
  return static_cast<NewtonSchulzSet>(found - names.begin());
}

}  // namespace

Recipe recipe_of(const Safetensors& file, Metadata& meta, const std::string& prefix, const Rows& rows) {
  Recipe recipe;
  read_sizes(meta, recipe.model, file.name());
  read_features(meta, recipe.model);
  read_gates(meta, file, prefix, recipe.model);
  recipe.data.seq_len = rows.length;
  recipe.data.sampler = meta.flag("DOCS") ? SamplerKind::docpack : SamplerKind::sequential;
  if (meta.has("MAX_SEGMENT")) recipe.data.max_segment = meta.whole("MAX_SEGMENT", 1, 1 << 20);
  recipe.train = {.batch_tokens = rows.tokens(), .micro_batch_tokens = rows.tokens(), .emulated_world = 1, .steps = 1};
  return recipe;
}

void read_optimizer(const Safetensors& file, Metadata& meta, Recipe& recipe) {
  MatrixRecipe& matrix = recipe.optim.matrix;
  matrix.lr = meta.number("MATRIX_LR", 0, 100);
  matrix.wd = meta.number("MUON_WD", 0, 100);
  matrix.momentum = meta.number("MUON_MOMENTUM", 0, 0.999999);
  matrix.momentum_start = meta.number("MUON_MOMENTUM_START", 0, 0.999999);
  matrix.momentum_warmup_steps = meta.whole("MUON_MOMENTUM_WARMUP_STEPS", 0, 1'000'000'000);
  matrix.newton_schulz = newton_schulz(meta, file.name());
  matrix.row_norm = meta.flag("ROW_NORM");
  meta.require("NS_STEPS", newton_schulz_rule(name_of(matrix.newton_schulz)).steps);
  AdamRecipe adam{.beta1 = meta.number("BETA1", 0, 0.9999999),
                  .beta2 = meta.number("BETA2", 0, 0.9999999),
                  .eps = meta.number("ADAM_EPS", 1e-30, 1)};
  recipe.optim.token = recipe.optim.scalar = adam;
  recipe.optim.token.lr = meta.number("TIED_EMBED_LR", 0, 100);
  recipe.optim.token.wd = meta.number("EMBED_WD", 0, 100);
  recipe.optim.scalar.lr = meta.number("SCALAR_LR", 0, 100);
  recipe.optim.scalar.wd = meta.number("ADAM_WD", 0, 100);
  recipe.optim.clip = meta.number("GRAD_CLIP_NORM", 0, 1e6);
  recipe.average = {.use = AverageUse::ema, .ema_decay = meta.number("EMA_DECAY", 0, 0.9999999)};
}

}  // namespace fairway::golden
