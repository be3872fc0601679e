// Checks that need more than one key. Each refusal is one sentence naming the keys and their values.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "model/shape/model_shape.h"
#include "recipe/recipe.h"

namespace fairway {
namespace {

class Checker {
 public:
  explicit Checker(std::string_view source) : source_(source) {}

  template <class... Values>
  void require(bool holds, fmt::format_string<Values...> sentence, Values&&... values) const {
    if (holds) return;
    throw InputError(fmt::format("recipe {}: {}", source_, fmt::format(sentence, std::forward<Values>(values)...)));
  }

 private:
  std::string_view source_;
};

void check_sizes(const ModelRecipe& m, const Checker& check) {
  check.require(m.dim % m.heads == 0, "model.dim = {} is not a multiple of model.heads = {}", m.dim, m.heads);
  check.require(m.heads % m.kv_heads == 0, "model.kv_heads = {} does not divide model.heads = {}", m.kv_heads, m.heads);
  check.require(m.bos < m.vocab, "model.bos = {} is not below model.vocab = {}", m.bos, m.vocab);
  check.require(m.rope.dims % 2 == 0, "model.rope.dims = {} is odd; channels rotate in pairs", m.rope.dims);
  check.require(m.rope.dims <= m.head_dim(), "model.rope.dims = {} exceeds the head size model.dim/model.heads = {}",
                m.rope.dims, m.head_dim());
  check.require(m.xsa_first_layer < m.layers, "model.xsa_first_layer = {} is not below model.layers = {}", m.xsa_first_layer,
                m.layers);
  check.require(m.bigram.rows != 1, "model.bigram.rows = 1 leaves no row to hash into; give 0 (off) or at least 2");
  // The hash multiplies token ids by 36313 in 32 bits (spec §4.2).
  check.require(m.bigram.rows == 0 || m.vocab <= 59000, "model.bigram.rows = {} needs model.vocab <= 59000, which is {}",
                m.bigram.rows, m.vocab);
  check.require(m.smear != SmearKind::input || m.dim >= kGateInputs,
                "model.smear = \"input\" reads {} channels, but model.dim = {}", kGateInputs, m.dim);
  check.require(m.smear_bos_mask || m.smear == SmearKind::input,
                "model.smear_bos_mask = false, but model.smear = \"{}\" has no mask to leave out", name_of(m.smear));
  check.require(m.attn_gate != AttnGateKind::sparse || m.dim >= kGateInputs,
                "model.attn_gate = \"sparse\" reads {} channels, but model.dim = {}", kGateInputs, m.dim);
  // Far above any published model; it keeps a mistyped size from asking for all memory there is.
  constexpr int64_t kMostParameters = int64_t{1} << 34;
  check.require(parameter_count(m) <= kMostParameters, "the model has {} parameters; at most {} are supported",
                parameter_count(m), kMostParameters);
}

void check_value_embed(const ModelRecipe& m, const Checker& check) {
  const auto& layers = m.value_embed.layers;
  check.require((m.value_embed.dim > 0) == !layers.empty(),
                "model.value_embed.dim = {} with {} layers in model.value_embed.layers; give both or neither",
                m.value_embed.dim, layers.size());
  check.require(std::is_sorted(layers.begin(), layers.end(), std::less_equal<>()),
                "model.value_embed.layers = [{}] is not strictly ascending", fmt::join(layers, ", "));
  check.require(layers.empty() || layers.back() < m.layers, "model.value_embed.layers names layer {}, but model.layers = {}",
                layers.empty() ? 0 : layers.back(), m.layers);
}

void check_loop_and_lanes(const ModelRecipe& m, const Checker& check) {
  if (m.loop.count > 0) {
    check.require(m.loop.start <= m.loop.end, "model.loop.start = {} is after model.loop.end = {}", m.loop.start, m.loop.end);
    check.require(m.loop.end < m.layers, "model.loop.end = {} is not below model.layers = {}", m.loop.end, m.layers);
  } else {
    check.require(m.loop.start == 0 && m.loop.end == 0,
                  "model.loop.start = {} and model.loop.end = {}, but model.loop.count = 0 loops nothing", m.loop.start,
                  m.loop.end);
  }
  if (m.lanes.start < 0) return;
  check.require(m.lanes.start < m.layers, "model.lanes.start = {} is not below model.layers = {}", m.lanes.start, m.layers);
  for (const bool looped : {false, true}) {
    if (looped && m.loop.count == 0) continue;
    const LayerOrder order = layer_order(m, looped);
    const auto first = std::find(order.layers.begin(), order.layers.end(), m.lanes.start) - order.layers.begin();
    const bool decoder = first >= order.encoder;
    const bool once = static_cast<int64_t>(order.layers.size()) - first == m.layers - m.lanes.start;
    check.require(
        decoder && once,
        "model.lanes.start = {} must lie in the second half of the layers{} and after the loop, as lanes merge only at the end",
        m.lanes.start, looped ? " (looped)" : "");
  }
}

void check_lengths(const Recipe& r, const Checker& check) {
  const int64_t longest = std::max(r.data.seq_len, r.score.context);
  check.require(r.model.rope.dims != 2 || longest <= r.model.rope.reference_length,
                "model.rope.dims = 2 cannot stretch its base from model.rope.reference_length = {} to {} tokens",
                r.model.rope.reference_length, longest);
  check.require(r.score.stride <= r.score.context, "score.stride = {} exceeds score.context = {}", r.score.stride,
                r.score.context);
}

void check_batch(const Recipe& r, const Checker& check) {
  const TrainRecipe& t = r.train;
  check.require(t.micro_batch_tokens % r.data.seq_len == 0,
                "train.micro_batch_tokens = {} is not a multiple of data.seq_len = {}", t.micro_batch_tokens, r.data.seq_len);
  check.require(t.batch_tokens % t.emulated_world == 0,
                "train.batch_tokens = {} is not a multiple of train.emulated_world = {}", t.batch_tokens, t.emulated_world);
  check.require(t.batch_tokens / t.emulated_world % t.micro_batch_tokens == 0,
                "train.batch_tokens/train.emulated_world = {} is not a multiple of train.micro_batch_tokens = {}",
                t.batch_tokens / t.emulated_world, t.micro_batch_tokens);
}

void check_run(const Recipe& r, const Checker& check) {
  const TrainRecipe& t = r.train;
  check.require(t.steps > 0 || t.seconds > 0, "train.steps = 0 and train.seconds = 0: the run would never end");
  check.require(t.steps > 0 || t.reserve_seconds < t.seconds, "train.reserve_seconds = {} leaves nothing of train.seconds = {}",
                t.reserve_seconds, t.seconds);
  const ScheduleClock clock = r.optim.schedule.clock;
  check.require(clock != ScheduleClock::steps || t.steps > 0, "optim.schedule.clock = \"steps\" needs train.steps, which is 0");
  check.require(clock != ScheduleClock::time || t.seconds > 0,
                "optim.schedule.clock = \"time\" needs train.seconds, which is 0");
  const MatrixRecipe& matrix = r.optim.matrix;
  check.require(matrix.projections || matrix.projection_slices == 1,
                "optim.matrix.projection_slices = {}, but optim.matrix.projections is false", matrix.projection_slices);
  if (matrix.projections) {
    check.require(r.model.dim % matrix.projection_slices == 0 && r.model.kv_dim() % matrix.projection_slices == 0,
                  "optim.matrix.projection_slices = {} does not divide the projections' {} and {} rows",
                  matrix.projection_slices, r.model.dim, r.model.kv_dim());
  }
  check.require((r.average.use == AverageUse::swa) == r.average.swa.enabled,
                "average.swa.enabled = {} with average.use = \"{}\": snapshots are collected exactly when they are used",
                r.average.swa.enabled, name_of(r.average.use));
}

void check_score(const ScoreRecipe& score, const Checker& check) {
  const LoraSites& s = score.lora.sites;
  check.require(s.q || s.k || s.v || s.o || s.mlp || s.head, "score.lora.sites has no site: nothing could learn");
}

void check_quant(const QuantRecipe& q, const Checker& check) {
  check.require(q.rule != QuantRule::gptq_lite || q.scale == ScaleRule::percentile,
                "quant.rule = \"gptq_lite\" searches percentiles, but quant.scale = \"{}\"", name_of(q.scale));
  check.require(q.rule == QuantRule::gptq || q.scale != ScaleRule::hessian_sdclip,
                "quant.scale = \"hessian_sdclip\" needs Hessians, which only quant.rule = \"gptq\" has");
  check.require(q.attn_bits != 1 && q.gate_bits != 1,
                "quant.attn_bits = {} and quant.gate_bits = {}: one bit has no levels but 0", q.attn_bits, q.gate_bits);
  check.require(q.mixed.count == 0 || q.rule == QuantRule::gptq,
                "quant.mixed.count = {} sorts by Hessians, which only quant.rule = \"gptq\" has", q.mixed.count);
}

}  // namespace

void validate(const Recipe& recipe, std::string_view source) {
  const Checker check(source);
  check.require(recipe.train.qat.bits != 1, "train.qat.bits = 1: one bit has no levels but 0");
  check_sizes(recipe.model, check);
  check_value_embed(recipe.model, check);
  check_loop_and_lanes(recipe.model, check);
  check_lengths(recipe, check);
  check_batch(recipe, check);
  check_run(recipe, check);
  check_quant(recipe.quant, check);
  check_score(recipe.score, check);
}

}  // namespace fairway
