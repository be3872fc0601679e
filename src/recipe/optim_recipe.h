// The [optim] and [average] tables: Muon for the banks (spec §8), AdamW for the rest (§7), learning-rate schedules
// (§10.2), weight averaging (§11).
#pragma once

#include "recipe/fields.h"

namespace fairway {

enum class NewtonSchulzSet : uint8_t { ns5, polar5, turbo4 };   // coefficient sets of §8.2
enum class PostNorm : uint8_t { none, rows, rows_columns };     // §8.3, after the iterations
enum class ScheduleStyle : uint8_t { iterations, fraction };    // §10.2 A and B
enum class ScheduleClock : uint8_t { automatic, time, steps };  // what measures a run's progress
enum class AverageUse : uint8_t { none, ema, swa };             // which weights a run ends with
enum class Precision : uint8_t { f32, bf16 };                   // of what an optimizer keeps or sends (§2)

template <>
struct EnumNames<NewtonSchulzSet> {
  static constexpr std::array<std::string_view, 3> names{"ns5", "polar5", "turbo4"};
};
template <>
struct EnumNames<PostNorm> {
  static constexpr std::array<std::string_view, 3> names{"none", "rows", "rows_columns"};
};
template <>
struct EnumNames<ScheduleStyle> {
  static constexpr std::array<std::string_view, 2> names{"iterations", "fraction"};
};
template <>
struct EnumNames<ScheduleClock> {
  static constexpr std::array<std::string_view, 3> names{"auto", "time", "steps"};
};
template <>
struct EnumNames<AverageUse> {
  static constexpr std::array<std::string_view, 3> names{"none", "ema", "swa"};
};
template <>
struct EnumNames<Precision> {
  static constexpr std::array<std::string_view, 2> names{"f32", "bf16"};
};

struct MatrixRecipe {
  double lr = 0.025;
  double wd = 0.04;
  double momentum = 0.99;
  double momentum_start = 0.92;
  int64_t momentum_warmup_steps = 1500;
  NewtonSchulzSet newton_schulz = NewtonSchulzSet::ns5;
  bool row_norm = false;
  bool aol = false;
  PostNorm post_norm = PostNorm::none;
  bool projections = false;
  int64_t projection_slices = 1;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("lr", self.lr, Between{0, 100}, "learning rate"_help);
    fields.key("wd", self.wd, Between{0, 100}, "decoupled weight decay, applied as lr·wd"_help);
    fields.key("momentum", self.momentum, Between{0, 0.999999}, "momentum after its warm-up"_help);
    fields.key("momentum_start", self.momentum_start, Between{0, 0.999999}, "momentum at step 0"_help);
    fields.key("momentum_warmup_steps", self.momentum_warmup_steps, Between{0, 1e9}, "steps of linear momentum warm-up"_help);
    fields.key("newton_schulz", self.newton_schulz, "coefficients of the orthogonalising iteration"_help);
    fields.key("row_norm", self.row_norm, "normalise the rows of the update first (MuonEq-R)"_help);
    fields.key("aol", self.aol, "rescale rows by their Gram sums before iterating (Turbo-Muon)"_help);
    fields.key("post_norm", self.post_norm, "normalisation after the iterations (Turbo-Muon)"_help);
    fields.key("projections", self.projections,
               "the projections of bigram and value_embed are matrices too, instead of scalars"_help);
    fields.key("projection_slices", self.projection_slices, Between{1, 1024},
               "each projection is orthogonalised in this many slices of rows"_help);
  }
  bool operator==(const MatrixRecipe&) const = default;
};

struct AdamRecipe {
  double lr = 0.025;
  double wd = 0.04;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("lr", self.lr, Between{0, 100}, "learning rate"_help);
    fields.key("wd", self.wd, Between{0, 100}, "decoupled weight decay, applied as lr·wd"_help);
    fields.key("beta1", self.beta1, Between{0, 0.9999999}, "decay of the first moment"_help);
    fields.key("beta2", self.beta2, Between{0, 0.9999999}, "decay of the second moment"_help);
    fields.key("eps", self.eps, Between{1e-30, 1}, "added to the root of the second moment"_help);
  }
  bool operator==(const AdamRecipe&) const = default;
};

struct ScheduleRecipe {
  ScheduleStyle style = ScheduleStyle::iterations;
  double warmdown_iters = 4000;
  double warmdown_fraction = 0.667;
  double floor = 0;
  ScheduleClock clock = ScheduleClock::automatic;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("style", self.style, "linear warm-down over a number of iterations, or over a fraction of the run"_help);
    fields.key("warmdown_iters", self.warmdown_iters, Between{0, 1e12}, "style iterations: length of the warm-down"_help);
    fields.key("warmdown_fraction", self.warmdown_fraction, Between{0, 1}, "style fraction: length of the warm-down"_help);
    fields.key("floor", self.floor, Between{0, 1}, "smallest learning-rate multiplier"_help);
    fields.key("clock", self.clock, "progress by time or by steps; auto = by steps when train.steps is given"_help);
  }
  bool operator==(const ScheduleRecipe&) const = default;
};

struct OptimRecipe {
  double clip = 0.3;
  Precision momentum_precision = Precision::f32;
  Precision token_precision = Precision::f32;
  Precision exchange_precision = Precision::f32;
  MatrixRecipe matrix;
  AdamRecipe token{.lr = 0.035};
  AdamRecipe scalar;
  ScheduleRecipe schedule;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("clip", self.clip, Between{0, 1e6},
               "largest gradient norm of a rank before ranks are averaged (0 = no clipping)"_help);
    fields.key("momentum_precision", self.momentum_precision, "Muon's momentum between steps"_help);
    fields.key("token_precision", self.token_precision,
               "the token, bigram and value tables and their moments after each update"_help);
    fields.key("exchange_precision", self.exchange_precision,
               "gradients of banks and tables and updates of banks as ranks send them; one process rounds alike"_help);
    fields.table("matrix", self.matrix, "Muon on the attention and MLP banks"_help);
    fields.table("token", self.token, "AdamW on the token, bigram and value tables"_help);
    fields.table("scalar", self.scalar, "AdamW on everything else"_help);
    fields.table("schedule", self.schedule, "learning-rate multiplier over the run"_help);
  }
  bool operator==(const OptimRecipe&) const = default;
};

struct SwaRecipe {
  bool enabled = false;
  int64_t every = 50;
  double lr_mul_below = 0.2;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("enabled", self.enabled, "collect snapshots and average them"_help);
    fields.key("every", self.every, Between{1, 1e9}, "steps between snapshots"_help);
    fields.key("lr_mul_below", self.lr_mul_below, Between{0, 1}, "begins once the learning-rate multiplier is below this"_help);
  }
  bool operator==(const SwaRecipe&) const = default;
};

struct AverageRecipe {
  AverageUse use = AverageUse::ema;
  double ema_decay = 0.997;
  SwaRecipe swa;

  template <class Self, class Fields>
  static void visit(Self& self, Fields& fields) {
    fields.key("use", self.use, "weights that the run ends with"_help);
    fields.key("ema_decay", self.ema_decay, Between{0, 0.9999999}, "decay of the exponential moving average"_help);
    fields.table("swa", self.swa, "mean of late snapshots"_help);
  }
  bool operator==(const AverageRecipe&) const = default;
};

}  // namespace fairway
