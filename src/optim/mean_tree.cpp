#include "optim/mean_tree.h"

#include "autograd/tape.h"
#include "comm/tree.h"

namespace fairway {
namespace {

size_t slot_bytes(int64_t elements) { return align_up(static_cast<size_t>(elements) * sizeof(float)); }

Tensor part(const Tensor& whole, int64_t offset, int64_t elements) {
  return make_view(whole.as<float>() + offset, {{elements}, DType::f32});
}

std::unique_ptr<BoundProgram> bind(Tape&& tape) { return std::make_unique<BoundProgram>(std::move(tape).finish()); }

}  // namespace

MeanTree::MeanTree(const Leaf& leaf, int64_t leaves)
    : leaves_(leaves), arena_("mean gradient", slot_bytes(leaf.elements) * static_cast<size_t>(tree_depth(leaves))) {
  for (int i = 0; i < tree_depth(leaves); ++i) {
    slots_.push_back(arena_.make("branch " + std::to_string(i), {{leaf.elements}, DType::f32}));
    Tape put;
    put.scope("into the mean");
    for (const Source& source : leaf.sources) {
      const Tensor target = part(slots_.back(), source.offset, source.gradient.numel());
      put.call(AccumulateScaled{.factor = leaf.factor, .overwrite = true},
               {put.input("branch", target), put.input("gradients", source.gradient), put.input("clip", leaf.clip)});
    }
    put_.push_back(bind(std::move(put)));
    if (i == 0) continue;
    Tape add;
    add.scope("sum of the mean");
    add.call(AccumulateScaled{}, {add.input("branch", slots_[slots_.size() - 2]), add.input("later", slots_.back()), Var{}});
    add_.push_back(bind(std::move(add)));
  }
}

void MeanTree::carry(Executor& executor) {
  --height_;
  executor.run(*add_[height_ - 1]);
}

void MeanTree::add(Executor& executor, int64_t leaf) {
  if (leaf == 0) height_ = 0;
  executor.run(*put_[height_++]);
  for (int k = carries_after(leaf); k > 0; --k) carry(executor);
  if (leaf + 1 == leaves_) {
    while (height_ > 1) carry(executor);
  }
}

}  // namespace fairway
