// The tables under [score] for modes that adapt while they score (scoring spec §2.4 to §2.7). Defaults are the published ones.
#pragma once

#include "recipe/fields.h"

namespace fairway {

enum class FreezeSemantics : uint8_t { intent, compat };
enum class LoraOrder : uint8_t { stream, compat };

template <>
struct EnumNames<FreezeSemantics> {
  static constexpr std::array<std::string_view, 2> names{"intent", "compat"};
};

template <>
struct EnumNames<LoraOrder> {
  static constexpr std::array<std::string_view, 2> names{"stream", "compat"};
};

struct SlotRecipe {
  int64_t steps = 5;
  double lr = 0.003;
  int64_t positions = 1984;
  bool carried = false;
  int64_t lane = 1024;
  bool same_document = false;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("steps", self.steps, Between{1, 1000}, "AdamW steps for each window"_help);
    fields.key("lr", self.lr, Between{0, 10}, "learning rate of the offset"_help);
    fields.key("positions", self.positions, Between{1, 1 << 20},
               "adapts on at most this many positions before the scored ones"_help);
    fields.key("carried", self.carried,
               "an offset runs along a lane of windows and learns from each segment after its score"_help);
    fields.key("lane", self.lane, Between{1, 1 << 20}, "windows of a lane, behind which a carried offset begins anew"_help);
    fields.key("same_document", self.same_document, "adapts on positions of the scored segment's document only"_help);
  }
  bool operator==(const SlotRecipe&) const = default;
};

struct TttRecipe {
  int64_t chunk = 32768;
  double lr = 0.002;
  double momentum = 0.9;
  int64_t epochs = 3;
  int64_t batch = 32;
  double clip = 1.0;
  int64_t frozen_blocks = 0;
  FreezeSemantics freeze_semantics = FreezeSemantics::intent;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("chunk", self.chunk, Between{1, 1 << 30}, "targets scored before the weights learn from them"_help);
    fields.key("lr", self.lr, Between{0, 10}, "learning rate of SGD, cosine to zero over the chunks"_help);
    fields.key("momentum", self.momentum, Between{0, 1}, "momentum of SGD"_help);
    fields.key("epochs", self.epochs, Between{1, 100}, "passes over a chunk after its score"_help);
    fields.key("batch", self.batch, Between{1, 4096}, "sequences of one step"_help);
    fields.key("clip", self.clip, Between{0, 1e6}, "largest norm of a step's gradient (0 = any)"_help);
    fields.key("frozen_blocks", self.frozen_blocks, Between{0, 1024}, "first blocks that do not learn"_help);
    fields.key("freeze_semantics", self.freeze_semantics,
               "a frozen block keeps all its weights, or its vectors only, as the published code had it"_help);
  }
  bool operator==(const TttRecipe&) const = default;
};

struct NgramRecipe {
  int64_t table_bits = 20;
  double beta = 1.0;
  double threshold_scale = 1.0;
  double damping = 0;
  int64_t order = 0;
  double threshold = 0.8;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("table_bits", self.table_bits, Between{4, 27},
               "ngram-published: log2 of the entries of each of its five tables, of 32 bytes each"_help);
    fields.key("beta", self.beta, Between{0, 20}, "strength of a hint at full confidence; of one order, of every hint"_help);
    fields.key("threshold_scale", self.threshold_scale, Between{0, 10},
               "five orders: factor on the least confidence of a hint"_help);
    fields.key("damping", self.damping, Between{0, 10}, "power of (1 - p) that weakens hints the model knows already"_help);
    fields.key("order", self.order, Between{0, 31},
               "looks up this many tokens only (0 = 16, 14, 12, 10 and 8 tokens, the longest first)"_help);
    fields.key("threshold", self.threshold, Between{0, 1},
               "one order: least confidence of a hint, after one sighting or more"_help);
  }
  bool operator==(const NgramRecipe&) const = default;
};

struct LoraSites {
  bool q = true, k = true, v = true, o = true, mlp = true, head = true;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("q", self.q, "query matrices have an adapter"_help);
    fields.key("k", self.k, "key matrices have one"_help);
    fields.key("v", self.v, "value matrices have one"_help);
    fields.key("o", self.o, "one stands beside the attention"_help);
    fields.key("mlp", self.mlp, "one stands beside the MLP"_help);
    fields.key("head", self.head, "the output table has one"_help);
  }
  bool operator==(const LoraSites&) const = default;
};

struct LoraRecipe {
  int64_t rank = 80;
  double alpha = 144;
  int64_t chunk = 48;
  int64_t batch = 0;
  LoraOrder order = LoraOrder::stream;
  double lr = 1e-4;
  double beta1 = 0;
  double beta2 = 0.99;
  double eps = 1e-10;
  double wd = 0.5;
  int64_t phases = 0;
  int64_t phase_documents = 2500;
  int64_t phase_chunk = 32768;
  double phase_lr = 0.001;
  LoraSites sites;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("rank", self.rank, Between{1, 4096}, "rank of the adapters"_help);
    fields.key("alpha", self.alpha, Between{0, 1e6}, "adapters are scaled by alpha/rank"_help);
    fields.key("chunk", self.chunk, Between{1, 1 << 20}, "targets scored before the adapters learn from them"_help);
    fields.key("batch", self.batch, Between{0, 4096},
               "documents at once, which changes no score in the stream's order (0 = 64 on a device and in the published "
               "order, on the CPU by their context)"_help);
    fields.key("order", self.order,
               "documents in the order of the stream, or as published: by their length, with A left warm; not legal"_help);
    fields.key("lr", self.lr, Between{0, 10}, "learning rate of AdamW"_help);
    fields.key("beta1", self.beta1, Between{0, 1}, "decay of AdamW's first moment"_help);
    fields.key("beta2", self.beta2, Between{0, 1}, "decay of AdamW's second moment"_help);
    fields.key("eps", self.eps, Between{0, 1}, "AdamW's epsilon"_help);
    fields.key("wd", self.wd, Between{0, 100}, "decoupled weight decay"_help);
    fields.key("phases", self.phases, Between{0, 1000},
               "how often all weights learn from the documents scored so far (0 = never)"_help);
    fields.key("phase_documents", self.phase_documents, Between{1, 1 << 30},
               "documents scored when the last phase begins"_help);
    fields.key("phase_chunk", self.phase_chunk, Between{1, 1 << 30},
               "targets of one step of a phase; the last chunk is left out"_help);
    fields.key("phase_lr", self.phase_lr, Between{0, 10}, "learning rate of a phase's SGD, cosine to zero"_help);
    fields.table("sites", self.sites, "where adapters are"_help);
  }
  bool operator==(const LoraRecipe&) const = default;
};

}  // namespace fairway
