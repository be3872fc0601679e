// The [quant] and [score] tables: how trained weights become an artifact and how it is scored. Kept to what the
// published systems state without ambiguity.
#pragma once

#include "recipe/adapt_recipe.h"
#include "recipe/fields.h"
#include "recipe/score_mode.h"

namespace fairway {

enum class QuantRule : uint8_t { rtn, gptq_lite, gptq };                // scoring spec §4.4, §4.5
enum class Calibration : uint8_t { self, train, online };               // §4.6
enum class ScaleRule : uint8_t { percentile, sdclip, hessian_sdclip };  // §4.3
enum class ClipChoice : uint8_t { mse, hessian };                       // §4.3, §4.5
enum class PruneScore : uint8_t { none, step, hessian };                // §5

template <>
struct EnumNames<QuantRule> {
  static constexpr std::array<std::string_view, 3> names{"rtn", "gptq_lite", "gptq"};
};
template <>
struct EnumNames<Calibration> {
  static constexpr std::array<std::string_view, 3> names{"self", "train", "online"};
};
template <>
struct EnumNames<ScaleRule> {
  static constexpr std::array<std::string_view, 3> names{"percentile", "sdclip", "hessian_sdclip"};
};
template <>
struct EnumNames<ClipChoice> {
  static constexpr std::array<std::string_view, 2> names{"mse", "hessian"};
};
template <>
struct EnumNames<PruneScore> {
  static constexpr std::array<std::string_view, 3> names{"none", "step", "hessian"};
};
struct QuantClipRecipe {  // SDClip: the largest level of a row stands for k standard deviations
  double attn = 12.85;
  double mlp = 12.85;
  double token = 20;
  double table = 20;
  double lambda = 0.175;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("attn", self.attn, Between{0.5, 1000}, "k of Q, K, V and O"_help);
    fields.key("mlp", self.mlp, Between{0.5, 1000}, "k of the MLP matrices"_help);
    fields.key("token", self.token, Between{0.5, 1000}, "k of the token embedding"_help);
    fields.key("table", self.table, Between{0.5, 1000}, "k of the bigram and value tables"_help);
    fields.key("lambda", self.lambda, Between{0, 1}, "hessian_sdclip: how far a row's importance moves its scale"_help);
  }
  bool operator==(const QuantClipRecipe&) const = default;
};

struct QuantMixedRecipe {  // §4.9
  int64_t count = 0;
  int64_t bits = 5;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("count", self.count, Between{0, 4096},
               "matrices of largest Hessian trace that keep matrix_bits (0 = all do)"_help);
    fields.key("bits", self.bits, Between{2, 8}, "bits of the other matrices"_help);
  }
  bool operator==(const QuantMixedRecipe&) const = default;
};

struct LqerRecipe {  // §4.10
  int64_t tensors = 0;
  int64_t rank = 4;
  int64_t group = 64;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("tensors", self.tensors, Between{0, 4096},
               "tensors of largest error that get a low-rank correction (0 = none)"_help);
    fields.key("rank", self.rank, Between{1, 64}, "rank of a correction"_help);
    fields.key("group", self.group, Between{8, 65536}, "values of a correction's second factor that share a scale"_help);
  }
  bool operator==(const LqerRecipe&) const = default;
};

// What the allocator multiplies a tensor's relative error by, per weight. Defaults: loss per weight of one matrix at a time on
// the published 11-layer model (§4.13); token and table from the clips that published systems settled on.
struct SensitivityRecipe {
  double q = 0.9, k = 1.4, v = 3.7, o = 2.1, up = 2.7, down = 4.5, token = 7.5, table = 1.0;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("q", self.q, Between{1e-6, 1e6}, "query matrices"_help);
    fields.key("k", self.k, Between{1e-6, 1e6}, "key matrices"_help);
    fields.key("v", self.v, Between{1e-6, 1e6}, "value matrices"_help);
    fields.key("o", self.o, Between{1e-6, 1e6}, "output matrices of the attention"_help);
    fields.key("up", self.up, Between{1e-6, 1e6}, "first MLP matrices"_help);
    fields.key("down", self.down, Between{1e-6, 1e6}, "second MLP matrices"_help);
    fields.key("token", self.token, Between{1e-6, 1e6}, "token embedding"_help);
    fields.key("table", self.table, Between{1e-6, 1e6}, "bigram and value tables and their projections"_help);
  }
  bool operator==(const SensitivityRecipe&) const = default;
};

struct QuantRecipe {
  QuantRule rule = QuantRule::gptq;
  Calibration calibration = Calibration::self;
  int64_t calibration_batches = 16;
  ScaleRule scale = ScaleRule::sdclip;
  ClipChoice choice = ClipChoice::hessian;
  int64_t matrix_bits = 6;
  int64_t attn_bits = 0;
  int64_t token_bits = 8;
  int64_t table_bits = 8;
  int64_t gate_bits = 0;
  int64_t half_elements = 65536;
  double damping = 0.01;
  double extra_damping = 0;
  PruneScore prune = PruneScore::none;
  bool trellis = true;
  bool two_sided = false;
  QuantClipRecipe clip;
  QuantMixedRecipe mixed;
  LqerRecipe lqer;
  SensitivityRecipe sensitivity;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("rule", self.rule, "round to nearest, the same with a search for the clip, or GPTQ"_help);
    fields.key("calibration", self.calibration,
               "source of GPTQ's inputs: own samples, training data, or the training run itself"_help);
    fields.key("calibration_batches", self.calibration_batches, Between{1, 4096},
               "micro-batches of training data, where that is the source"_help);
    fields.key("scale", self.scale,
               "a row's step: from a percentile of its magnitudes (never below 1/R) or from its deviation"_help);
    fields.key("choice", self.choice, "percentile: the error that picks the clip, plain or weighted by the Hessian"_help);
    fields.key("matrix_bits", self.matrix_bits, Between{2, 8}, "bits of the attention and MLP banks"_help);
    fields.key("attn_bits", self.attn_bits, Between{0, 8},
               "bits of the attention banks where they differ (0 = as matrix_bits)"_help);
    fields.key("token_bits", self.token_bits, Between{2, 8}, "bits of the token embedding"_help);
    fields.key("table_bits", self.table_bits, Between{2, 8}, "bits of the bigram and value tables"_help);
    fields.key("gate_bits", self.gate_bits, Between{0, 8}, "bits of the attention gate's rows (0 = half precision)"_help);
    fields.key("half_elements", self.half_elements, Between{0, 1 << 30},
               "tables and projections with at most this many elements stay in half precision"_help);
    fields.key("damping", self.damping, Between{0, 1},
               "share of the mean diagonal added to a Hessian before it is inverted"_help);
    fields.key("extra_damping", self.extra_damping, Between{0, 1}, "the same, added once before that"_help);
    fields.key(
        "prune", self.prune,
        "pack --as-published, over the budget: zero levels of +-1 in order of step, or of the increase of GPTQ's loss"_help);
    fields.key("trellis", self.trellis,
               "pack also tries tensors on a trellis, and keeps it where the measured divergence is less"_help);
    fields.key("two_sided", self.two_sided,
               "pack lets rounding errors make up for each other between a matrix's outputs too, as gradients tell"_help);
    fields.table("clip", self.clip, "SDClip's k by kind of tensor"_help);
    fields.table("mixed", self.mixed, "two widths, by the trace of the Hessian"_help);
    fields.table("lqer", self.lqer, "low-rank correction of the quantization error"_help);
    fields.table("sensitivity", self.sensitivity, "weights of the allocator"_help);
  }
  bool operator==(const QuantRecipe&) const = default;
};

struct ScoreRecipe {
  ScoringMode mode;
  int64_t stride = 64;
  int64_t context = 2048;
  int64_t windows = 0;
  bool documents = false;
  SlotRecipe slot;
  TttRecipe ttt;
  LoraRecipe lora;
  NgramRecipe ngram;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key(
        "mode", self.mode,
        "how the stream is scored; +tilt adds hints of [score.ngram]; the published forms of slot and ngram break the rules"_help);
    fields.key("stride", self.stride, Between{1, 1 << 20}, "tokens scored per window, except in plain mode"_help);
    fields.key("context", self.context, Between{1, 1 << 20}, "tokens of one scoring window"_help);
    fields.key("windows", self.windows, Between{0, 4096}, "windows computed at once (0 = by their length)"_help);
    fields.key("documents", self.documents, "attention stays inside documents (if not set: as in training)"_help);
    fields.table("slot", self.slot, "an offset of the last hidden state, fitted while scoring"_help);
    fields.table("ttt", self.ttt, "weights that learn from scored chunks"_help);
    fields.table("lora", self.lora, "adapters that learn inside a document"_help);
    fields.table("ngram", self.ngram, "hints from repeated token sequences"_help);
  }
  bool operator==(const ScoreRecipe&) const = default;
};

}  // namespace fairway
