#include "score/sgd.h"

#include "autograd/tape.h"
#include "base/error.h"

namespace fairway {
namespace {

// How many of the first axis's slices belong to one block: banks of query and output hold two for each layer.
bool is_frozen(const ParamInfo& info, int64_t slice, const ModelRecipe& model, int64_t blocks, FreezeSemantics semantics) {
  const BlockPart part = info.row().block;
  if (part == BlockPart::none || (part == BlockPart::matrices && semantics != FreezeSemantics::intent)) return false;
  return slice % model.layers < blocks;
}

}  // namespace

std::vector<FlatRange> trainable_ranges(const ParamStore& params, const ModelRecipe& model, int64_t frozen_blocks,
                                        FreezeSemantics semantics) {
  std::vector<FlatRange> out;
  for (const ParamBank& bank : params.banks()) {
    const bool per_layer = bank.info.row().block != BlockPart::none;
    const int64_t slices = per_layer ? bank.value.dim(0) : 1, size = bank.value.numel() / slices;
    for (int64_t slice = 0; slice < slices; ++slice) {
      if (is_frozen(bank.info, slice, model, frozen_blocks, semantics)) continue;
      const FlatRange range{bank.offset + slice * size, bank.offset + (slice + 1) * size};
      if (!out.empty() && out.back().end == range.begin) {
        out.back().end = range.end;
      } else {
        out.push_back(range);
      }
    }
  }
  return out;
}

MaskedSgd::MaskedSgd(const ParamStore& params, const Tensor& gradient, const std::vector<FlatRange>& trainable,
                     const Settings& settings, Executor& executor)
    : executor_(&executor),
      state_("momentum", align_up(params.flat_values().spec.bytes()) + align_up(trainable.size() * sizeof(double)) + 1024) {
  const Tensor value = params.flat_values();
  FAIRWAY_ASSERT(gradient.numel() == value.numel(), "a gradient of another model");
  buffer_ = state_.make("momentum", value.spec);
  rate_ = state_.make("learning rate", {{1}, DType::f64});
  const Tensor totals = state_.make("squared norms", {{static_cast<int64_t>(trainable.size())}, DType::f64});
  const Tensor clip = state_.make("clip", {{2}, DType::f64});
  Tape zero;
  zero.call(Fill{}, {zero.input("momentum", buffer_)});
  zero_ = executor.open(std::move(zero).finish());

  Tape tape;
  tape.scope("sgd");
  const auto part = [&](const char* name, const Tensor& whole, const FlatRange& range) {
    return tape.input(name, whole.part(range.begin, {range.end - range.begin}));
  };
  const Var sums = tape.input("squared norms", totals), coefficient = tape.input("clip", clip);
  if (settings.clip > 0) {
    for (size_t i = 0; i < trainable.size(); ++i)
      tape.call(SumSquares{.slot = static_cast<int64_t>(i)}, {part("gradient", gradient, trainable[i]), sums});
  }
  tape.call(ClipCoefficient{.max_norm = settings.clip}, {sums, coefficient});
  for (const FlatRange& range : trainable) {
    const Var momentum = part("momentum", buffer_, range);
    tape.call(AccumulateScaled{.factor = settings.momentum, .overwrite = true}, {momentum, momentum, Var{}});
    tape.call(AccumulateScaled{}, {momentum, part("gradient", gradient, range), coefficient});
    tape.call(AccumulateScaled{.factor = -1}, {part("weights", value, range), momentum, tape.input("rate", rate_)});
  }
  step_ = executor.open(std::move(tape).finish());
}

void MaskedSgd::reset() { zero_->run(); }

void MaskedSgd::step(double learning_rate) {
  *rate_.as<double>() = learning_rate;
  executor_->upload(rate_);
  step_->run();
}

}  // namespace fairway
