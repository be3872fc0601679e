// The [data] and [train] tables: how batches are drawn (spec §1.3, §12, A.1) and how long and in which pieces a run
// goes (§1.3, §10.1, §11.3).
#pragma once

#include "recipe/fields.h"

namespace fairway {

enum class SamplerKind : uint8_t { sequential, coprime, shuffled, docpack };  // §12.2, §12.1, §12.3, A.1

template <>
struct EnumNames<SamplerKind> {
  static constexpr std::array<std::string_view, 4> names{"sequential", "coprime", "shuffled", "docpack"};
};

struct DataRecipe {
  SamplerKind sampler = SamplerKind::sequential;
  int64_t seq_len = 2048;
  int64_t max_segment = 2048;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("sampler", self.sampler, "order in which windows are read from the shards"_help);
    fields.key("seq_len", self.seq_len, Between{1, 1 << 20}, "tokens of one window, T"_help);
    fields.key("max_segment", self.max_segment, Between{1, 1 << 20},
               "docpack: longer documents are cut into pieces of this many tokens"_help);
  }
  bool operator==(const DataRecipe&) const = default;
};

struct QatRecipe {  // fake quantization of the banks on the grid that [quant] gives them, straight-through gradient
  bool enabled = false;
  double lr_mul_below = 0.15;
  int64_t bits = 0;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("enabled", self.enabled, "train the banks through fake quantization late in the run"_help);
    fields.key("lr_mul_below", self.lr_mul_below, Between{0, 1}, "begins once the learning-rate multiplier is below this"_help);
    fields.key("bits", self.bits, Between{0, 8}, "bits of the fake-quantized weights (0 = those of [quant])"_help);
  }
  bool operator==(const QatRecipe&) const = default;
};

struct TrainRecipe {
  int64_t batch_tokens = 786432;
  int64_t micro_batch_tokens = 98304;
  int64_t emulated_world = 8;
  double seconds = 600;
  double reserve_seconds = 0;
  int64_t steps = 0;
  int64_t seed = 1337;
  int64_t validate_every = 0;
  int64_t checkpoint_every = 0;
  double checkpoint_seconds = 60;
  QatRecipe qat;

  int64_t micro_batches() const { return batch_tokens / micro_batch_tokens; }  // per step, all emulated ranks together

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("batch_tokens", self.batch_tokens, Between{1, 1LL << 32},
               "tokens of one optimizer step, all ranks together"_help);
    fields.key("micro_batch_tokens", self.micro_batch_tokens, Between{1, 1 << 26},
               "tokens of one forward and backward pass"_help);
    fields.key("emulated_world", self.emulated_world, Between{1, 1024},
               "ranks whose arithmetic is kept: data slices and gradient clipping are per emulated rank"_help);
    fields.key("seconds", self.seconds, Between{0, 1e7},
               "training budget by the clock (0 = no limit; steps must be given)"_help);
    fields.key("reserve_seconds", self.reserve_seconds, Between{0, 1e7},
               "part of the budget kept for work after training; calibration on training data keeps more if it is measured to "
               "need it"_help);
    fields.key("steps", self.steps, Between{0, 1e12},
               "optimizer steps; when given it replaces the clock (0 = by the clock)"_help);
    fields.key("seed", self.seed, Between{0, 9007199254740992.0}, "seed of the initial weights"_help);
    fields.key("validate_every", self.validate_every, Between{0, 1e12}, "steps between validations (0 = only at the end)"_help);
    fields.key("checkpoint_every", self.checkpoint_every, Between{0, 1e12},
               "steps between checkpoints (0 = by the clock)"_help);
    fields.key("checkpoint_seconds", self.checkpoint_seconds, Between{0, 1e7}, "seconds between checkpoints (0 = never)"_help);
    fields.table("qat", self.qat, "late quantization-aware training"_help);
  }
  bool operator==(const TrainRecipe&) const = default;
};

}  // namespace fairway
