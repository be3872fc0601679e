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
  if (recipe.optim.exchange_precision == Precision::bf16) layout.sent = DType::bf16;
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
  const auto pad = [&] { layout.elements = round_up(layout.elements, ranks * kLine); };
  pad();
  if (layout.sent == DType::bf16) layout.rounded = layout.elements;
  for (Place& place : layout.replicated) {
    const DType sent = place.bank->info.role == ParamRole::token ? layout.sent : DType::f32;
    if (layout.packs.empty() || layout.packs.back().sent != sent) pad(), layout.packs.push_back({layout.elements, 0, sent});
    place.offset = layout.elements;
    layout.elements += round_up(place.bank->value.numel(), kLine);
    Pack& pack = layout.packs.back();
    pack.elements = round_up(layout.elements - pack.offset, ranks * kLine);
    if (sent == DType::bf16) layout.rounded = pack.offset + pack.elements;
  }
  pad();
  return layout;
}

StepTraffic step_traffic(const GradientLayout& layout, int ranks) {
  StepTraffic traffic;
  const auto sent = [&](int64_t elements, DType type) {
    return elements / ranks * (ranks - 1) * static_cast<int64_t>(size_of(type));
  };
  for (const ShardedBank& bank : layout.matrices) traffic.reduce_scatter += sent(bank.padded, layout.sent);
  traffic.all_gather = traffic.reduce_scatter;
  for (const Pack& pack : layout.packs) traffic.replicated += 2 * sent(pack.elements, pack.sent);
  return traffic;
}

}  // namespace fairway
