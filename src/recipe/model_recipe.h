// The [model] table: every feature of spec §4, §5 and Appendix A that a recipe can choose. A feature is absent by
// default; sizes default to the published 11 layers of width 512.
#pragma once

#include <vector>

#include "recipe/fields.h"

namespace fairway {

enum class SmearKind : uint8_t { none, constant, input };  // §4.3; A.2
enum class SkipKind : uint8_t { none, additive, gated };   // §4.4; §4.10
enum class AttnGateKind : uint8_t { none, sparse };        // A.3

template <>
struct EnumNames<SmearKind> {
  static constexpr std::array<std::string_view, 3> names{"none", "static", "input"};
};
template <>
struct EnumNames<SkipKind> {
  static constexpr std::array<std::string_view, 3> names{"none", "additive", "gated"};
};
template <>
struct EnumNames<AttnGateKind> {
  static constexpr std::array<std::string_view, 2> names{"none", "sparse"};
};

inline constexpr int64_t kGateInputs = 12;  // channels that the input smear and the sparse attention gate read

struct RopeRecipe {  // §4.7
  int64_t dims = 16;
  double base = 10000;
  int64_t reference_length = 1024;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("dims", self.dims, Between{0, 1024}, "leading channels of each head that rotate (even; 0 = no rotation)"_help);
    fields.key("base", self.base, Between{1, 1e9}, "base of the rotation frequencies"_help);
    fields.key("reference_length", self.reference_length, Between{1, 1 << 24},
               "the base grows for sequences longer than this (T_ref)"_help);
  }
  bool operator==(const RopeRecipe&) const = default;
};

struct BigramRecipe {  // §4.2
  int64_t rows = 0;
  int64_t dim = 128;
  double scale_init = 0.05;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("rows", self.rows, Between{0, 1 << 24}, "rows of the hashed token-pair table (0 = no bigram embedding)"_help);
    fields.key("dim", self.dim, Between{1, 16384}, "width of the table before its projection"_help);
    fields.key("scale_init", self.scale_init, Between{-100, 100}, "initial value of the learned scale"_help);
  }
  bool operator==(const BigramRecipe&) const = default;
};

struct ValueEmbedRecipe {  // §4.6 step 2
  int64_t dim = 0;
  std::vector<int64_t> layers;
  double init_std = 0.01;
  double scale_init = 0.1;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("dim", self.dim, Between{0, 16384}, "width of the shared value table (0 = no value embedding)"_help);
    fields.key("layers", self.layers, Between{0, 255}, "layers whose values receive it, ascending"_help);
    fields.key("init_std", self.init_std, Between{0, 100}, "standard deviation of the initial table"_help);
    fields.key("scale_init", self.scale_init, Between{-100, 100}, "initial value of the learned scale"_help);
  }
  bool operator==(const ValueEmbedRecipe&) const = default;
};

struct LoopRecipe {  // §5.1
  int64_t start = 0;
  int64_t end = 0;
  int64_t count = 0;
  double at_fraction = 0.35;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("start", self.start, Between{0, 255}, "first layer of the repeated range"_help);
    fields.key("end", self.end, Between{0, 255}, "last layer of the repeated range, itself included"_help);
    fields.key("count", self.count, Between{0, 64}, "extra passes over the range (0 = no depth recurrence)"_help);
    fields.key("at_fraction", self.at_fraction, Between{0, 1}, "part of the training budget after which the passes begin"_help);
  }
  bool operator==(const LoopRecipe&) const = default;
};

struct LanesRecipe {  // §5.2
  int64_t start = -1;
  double resid_init = 1.1;
  double post_init = 1.0;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("start", self.start, Between{-1, 255}, "first layer run as two parallel lanes (-1 = none)"_help);
    fields.key("resid_init", self.resid_init, Between{-100, 100}, "initial weight of a lane's own residual"_help);
    fields.key("post_init", self.post_init, Between{-100, 100}, "initial weight of a sublayer's output in each lane"_help);
  }
  bool operator==(const LanesRecipe&) const = default;
};

struct ModelRecipe {
  int64_t vocab = 1024;
  int64_t bos = 1;
  int64_t dim = 512;
  int64_t layers = 11;
  int64_t heads = 8;
  int64_t kv_heads = 4;
  int64_t mlp_hidden = 1536;
  double embed_init_std = 0.005;
  double q_gain_init = 1.5;
  double softcap = 30;
  bool layer_scale = true;
  int64_t xsa_first_layer = -1;
  SmearKind smear = SmearKind::none;
  bool smear_bos_mask = true;
  SkipKind skip = SkipKind::none;
  AttnGateKind attn_gate = AttnGateKind::none;
  RopeRecipe rope;
  BigramRecipe bigram;
  ValueEmbedRecipe value_embed;
  LoopRecipe loop;
  LanesRecipe lanes;

  int64_t head_dim() const { return dim / heads; }          // E
  int64_t kv_dim() const { return kv_heads * head_dim(); }  // K·E

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("vocab", self.vocab, Between{2, 65536}, "number of token ids; input and output embeddings are one table"_help);
    fields.key("bos", self.bos, Between{0, 65535}, "token id that opens every document"_help);
    fields.key("dim", self.dim, Between{1, 16384}, "width of the residual stream"_help);
    fields.key("layers", self.layers, Between{1, 256}, "number of blocks"_help);
    fields.key("heads", self.heads, Between{1, 1024}, "query heads"_help);
    fields.key("kv_heads", self.kv_heads, Between{1, 1024},
               "key and value heads, each shared by heads/kv_heads query heads"_help);
    fields.key("mlp_hidden", self.mlp_hidden, Between{1, 65536}, "hidden units of the MLP"_help);
    fields.key("embed_init_std", self.embed_init_std, Between{0, 100},
               "standard deviation of the initial token embedding"_help);
    fields.key("q_gain_init", self.q_gain_init, Between{-100, 100}, "initial gain of the normalised queries"_help);
    fields.key("softcap", self.softcap, Between{0.01, 10000}, "logits become softcap·tanh(logits/softcap)"_help);
    fields.key("layer_scale", self.layer_scale, "scale the normed inputs of layer i by 1/sqrt(i+1)"_help);
    fields.key("xsa_first_layer", self.xsa_first_layer, Between{-1, 255},
               "from this layer on, attention outputs lose their part along the token's own value (-1 = nowhere)"_help);
    fields.key("smear", self.smear, "mix each token's embedding with the previous one's"_help);
    fields.key("smear_bos_mask", self.smear_bos_mask,
               "input smear: a document's start token takes nothing from the document before"_help);
    fields.key("skip", self.skip, "U-Net connections from the first half of the layers to the second"_help);
    fields.key("attn_gate", self.attn_gate, "gate on each head's output"_help);
    fields.table("rope", self.rope, "rotary positions"_help);
    fields.table("bigram", self.bigram, "hashed embedding of token pairs"_help);
    fields.table("value_embed", self.value_embed, "token embedding added to attention values"_help);
    fields.table("loop", self.loop, "depth recurrence"_help);
    fields.table("lanes", self.lanes, "attention and MLP on parallel residual lanes"_help);
  }
  bool operator==(const ModelRecipe&) const = default;
};

}  // namespace fairway
