#include "optim/gradient_layout.h"

#include <algorithm>

#include "base/error.h"

namespace fairway {
namespace {

constexpr int64_t kLine = static_cast<int64_t>(kArenaAlignment / sizeof(float));

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Shape matrices_of(const ParamBank& bank, int64_t slices) {
  const Shape& shape = bank.value.spec.shape;
  if (shape.rank == 3) return shape;
  if (shape[0] % slices != 0) {
    throw InputError("optim.matrix.projection_slices = " + std::to_string(slices) + " does not divide the " +
                     std::to_string(shape[0]) + " rows of " + bank.info.name);
  }
  return {slices, shape[0] / slices, shape[1]};
}

GradientLayout gradient_layout(const Recipe& recipe, const ParamStore& params, int ranks) {
  GradientLayout layout;
  for (const ParamBank& bank : params.banks()) {
    if (bank.info.role != ParamRole::matrix) {
      layout.replicated.push_back({&bank});
      continue;
    }
    ShardedBank sharded{{&bank}, matrices_of(bank, recipe.optim.matrix.projection_slices)};
    sharded.shard = round_up(sharded.shape[0], ranks) / ranks;
    sharded.padded = sharded.shard * ranks * sharded.matrix();
    layout.matrices.push_back(sharded);
  }
  std::stable_sort(layout.matrices.begin(), layout.matrices.end(),
                   [](const ShardedBank& a, const ShardedBank& b) { return a.shape.numel() > b.shape.numel(); });
  std::stable_sort(layout.replicated.begin(), layout.replicated.end(),
                   [](const Place& a, const Place& b) { return a.bank->info.role < b.bank->info.role; });
  for (ShardedBank& bank : layout.matrices) {
    bank.offset = layout.elements;
    layout.elements += round_up(bank.padded, kLine);
  }
  layout.pack_offset = layout.elements;
  for (Place& place : layout.replicated) {
    place.offset = layout.elements;
    layout.elements += round_up(place.bank->value.numel(), kLine);
  }
  layout.pack = round_up(layout.elements - layout.pack_offset, ranks * kLine);
  layout.elements = layout.pack_offset + layout.pack;
  return layout;
}

StepTraffic step_traffic(const GradientLayout& layout, int ranks, int64_t element_bytes) {
  StepTraffic traffic;
  for (const ShardedBank& bank : layout.matrices) traffic.reduce_scatter += bank.padded / ranks * (ranks - 1) * element_bytes;
  traffic.all_gather = traffic.reduce_scatter;
  traffic.replicated = 2 * (layout.pack / ranks * (ranks - 1) * element_bytes);
  return traffic;
}

}  // namespace fairway
