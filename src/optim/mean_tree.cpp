#include "optim/mean_tree.h"

#include "autograd/tape.h"
#include "comm/tree.h"

namespace fairway {
namespace {

size_t slot_bytes(int64_t elements) { return align_up(static_cast<size_t>(elements) * sizeof(float)); }

}  // namespace

MeanTree::MeanTree(const Leaf& leaf, int64_t leaves, Executor& executor)
    : leaves_(leaves), arena_("mean gradient", slot_bytes(leaf.elements) * static_cast<size_t>(tree_depth(leaves))) {
  for (int i = 0; i < tree_depth(leaves); ++i) {
    slots_.push_back(arena_.make("branch " + std::to_string(i), {{leaf.elements}, DType::f32}));
    Tape put;
    put.scope("into the mean");
    for (const Source& source : leaf.sources) {
      const Tensor target = slots_.back().part(source.offset, {source.gradient.numel()});
      put.call(AccumulateScaled{.factor = leaf.factor, .overwrite = true, .round = source.offset < leaf.rounded},
               {put.input("branch", target), put.input("gradients", source.gradient), put.input("clip", leaf.clip)});
    }
    put_.push_back(executor.open(std::move(put).finish()));
    if (i == 0) continue;
    Tape add;
    add.scope("sum of the mean");
    for (const bool round : {true, false}) {
      const int64_t first = round ? 0 : leaf.rounded, count = (round ? leaf.rounded : leaf.elements) - first;
      const auto part = [&](const char* name, const Tensor& slot) { return add.input(name, slot.part(first, {count})); };
      if (count > 0)
        add.call(AccumulateScaled{.round = round},
                 {part("branch", slots_[slots_.size() - 2]), part("later", slots_.back()), Var{}});
    }
    add_.push_back(executor.open(std::move(add).finish()));
  }
}

void MeanTree::carry() {
  --height_;
  add_[height_ - 1]->run();
}

void MeanTree::add(int64_t leaf) {
  if (leaf == 0) height_ = 0;
  put_[height_++]->run();
  for (int k = carries_after(leaf); k > 0; --k) carry();
  if (leaf + 1 == leaves_) {
    while (height_ > 1) carry();
  }
}

}  // namespace fairway
