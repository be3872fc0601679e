// Cases of the ops around matrix products and attention.
#include <cmath>

#include "ops/op_case.h"

namespace fairway::ops_test {
namespace {

struct Product {
  int64_t rows, outputs, inner;
};

std::vector<Product> product_sweep() {
  std::vector<Product> sweep;
  for (int64_t size : kSizes) {
    sweep.push_back({size, 7, 13});
    sweep.push_back({5, size, 16});
    sweep.push_back({3, 17, size});
  }
  sweep.push_back({65, 33, 64});
  sweep.push_back({130, 97, 200});
  return sweep;
}

enum Output : unsigned { kPlain = 0, kExclusive = 1, kGated = 2 };

OpCase<Attention> attention_case(int64_t sequences, int64_t length, int64_t heads, int64_t kv_heads, int64_t size,
                                 double segment = 0, unsigned output = kPlain) {
  const int64_t rows = sequences * length;
  const Attention op{.row_length = length,
                     .heads = heads,
                     .kv_heads = kv_heads,
                     .scale = 1 / std::sqrt(size),
                     .exclusive = (output & kExclusive) != 0};
  // A row that sees only itself has no gradient through its score.
  const Allowed allowed{.noise = length == 1 || segment == 1 ? 1e-6 : 0};
  return {
      op,
      {uniform({rows, heads * size}, -2, 2), uniform({rows, kv_heads * size}, -2, 2), uniform({rows, kv_heads * size}),
       segment > 0 ? segments(rows, segment) : absent(), output & kGated ? uniform({rows, heads}, -2, 2) : absent(), absent()},
      allowed};
}

}  // namespace

std::vector<OpCase<ProjectedEmbed>> cases(const ProjectedEmbed&) {
  using Index = ProjectedEmbed::Index;
  std::vector<OpCase<ProjectedEmbed>> list;
  const Allowed allowed{.noise = 1e-6};  // the scale's gradient is one number made of many f32 sums, and may nearly cancel
  for (const Product& p : product_sweep())
    for (Index index : {Index::token, Index::bigram})
      list.push_back({{.index = index, .row_length = p.rows},
                      {indices(p.rows, 19), uniform({19, p.inner}), uniform({p.outputs, p.inner}), uniform({1}, 0.1, 1)},
                      allowed});
  list.push_back({{.index = Index::bigram, .row_length = 5},  // several sequences, so the last row is used several times
                  {indices(20, 9), uniform({6, 3}), uniform({4, 3}), uniform({1}, 0.1, 1)},
                  allowed});
  return list;
}

std::vector<OpCase<QkvProject>> cases(const QkvProject&) {
  std::vector<OpCase<QkvProject>> list;
  for (const Product& p : product_sweep()) {
    const int64_t kv = (p.outputs + 1) / 2;
    list.push_back(
        {{}, {uniform({p.rows, p.inner}), uniform({p.outputs, p.inner}), uniform({kv, p.inner}), uniform({kv, p.inner})}});
  }
  return list;
}

std::vector<OpCase<Attention>> cases(const Attention&) {
  std::vector<OpCase<Attention>> list;
  for (int64_t length : kSizes) list.push_back(attention_case(2, length, 2, 1, 8));
  for (int64_t size : kSizes) list.push_back(attention_case(1, 13, 2, 2, size));
  for (int64_t length : {127, 128, 129}) list.push_back(attention_case(1, length, 1, 1, 16));
  list.push_back(attention_case(3, 5, 1, 1, 4));
  list.push_back(attention_case(2, 33, 4, 2, 64));
  list.push_back(attention_case(1, 17, 6, 2, 7));
  for (double segment : {1.0, 3.0, 40.0}) list.push_back(attention_case(1, 65, 2, 1, 16, segment));
  list.push_back(attention_case(1, 200, 2, 1, 8, 70));
  for (unsigned output : {kExclusive + 0u, kGated + 0u, kExclusive | kGated}) {
    list.push_back(attention_case(2, 33, 4, 2, 64, 0, output));
    list.push_back(attention_case(1, 17, 6, 2, 7, 5, output));  // heads that the cpu pads
    list.push_back(attention_case(1, 65, 2, 1, 16, 40, output));
  }
  return list;
}

std::vector<OpCase<AttentionCached>> cases(const AttentionCached&) {
  std::vector<OpCase<AttentionCached>> list;
  const auto add = [&](int64_t rows, int64_t length, int64_t heads, int64_t kv_heads, int64_t size) {
    list.push_back({{.heads = heads, .kv_heads = kv_heads, .scale = 1 / std::sqrt(size)},
                    {uniform({rows, heads * size}, -2, 2), uniform({rows, kv_heads * size}, -2, 2),
                     uniform({rows, kv_heads * size}), uniform({rows * kv_heads, length / kCacheKeys, size, kCacheKeys}, -2, 2),
                     uniform({rows * kv_heads, length, size}), indices(1, length)}});
  };
  for (int64_t length : {16, 32, 48, 80, 128, 400}) add(2, length, 2, 1, 8);
  for (int64_t size : kSizes) add(3, 80, 4, 2, size);
  add(1, 16, 1, 1, 4);
  add(7, 160, 6, 2, 32);
  add(5, 320, 3, 3, 64);
  return list;
}

std::vector<OpCase<DrawTokens>> cases(const DrawTokens&) {
  std::vector<OpCase<DrawTokens>> list;
  const auto matrix = [](int64_t rows, int64_t columns, int64_t limit) {
    Slot slot = indices(rows * columns, limit);
    slot.shape = {rows, columns};
    return slot;
  };
  const auto add = [&](int64_t rows, int64_t vocab, int64_t length, int64_t rotated, double temperature) {
    list.push_back({{.temperature = temperature, .cap = 30},
                    {uniform({rows, vocab}, -4, 4), uniform_f64({rows, length}, 0, 0.999), matrix(rows, length, vocab),
                     indices(1, length), indices(rows * 3, vocab), indices(rows, rows * 3), indices(rows, vocab),
                     uniform({length, rotated}), uniform({1, rotated})}});
  };
  for (int64_t vocab : {1, 2, 31, 33, 255, 257, 1000, 1024, 5003}) add(3, vocab, 9, 4, 0.8);
  for (int64_t length : {1, 2, 3, 4, 40}) add(5, 64, length, 2, 1.5);
  for (int64_t vocab : {1, 100, 1024}) add(4, vocab, 6, 16, 0);
  return list;
}

std::vector<OpCase<ProjectResidual>> cases(const ProjectResidual&) {
  std::vector<OpCase<ProjectResidual>> list;
  for (const Product& p : product_sweep()) {
    const Slot x = uniform({p.rows, p.outputs}), h = uniform({p.rows, p.inner}), weight = uniform({p.outputs, p.inner}),
               scale = uniform({p.outputs}, 0.5, 1.5);
    list.push_back({{}, {x, h, weight, scale}});
    list.push_back({{}, {absent(), h, weight, scale}});
  }
  return list;
}

std::vector<OpCase<LowRankAdd>> cases(const LowRankAdd&) {
  std::vector<OpCase<LowRankAdd>> list;
  const auto add = [&](int64_t documents, int64_t length, const Product& p, int64_t rank) {
    const int64_t rows = documents * length;
    const Slot base = uniform({rows, p.outputs}), x = uniform({rows, p.inner}), a = uniform({documents, rank, p.inner}),
               b = uniform({documents, p.outputs, rank}), gain = uniform({p.outputs}, 0.5, 1.5);
    list.push_back({{.scale = 1.8}, {base, x, a, b, gain}});
    list.push_back({{.scale = 0.5}, {base, x, a, b, absent()}});
    list.push_back({{}, {absent(), x, a, b, absent()}});
    list.push_back({{.scale = 1.8}, {absent(), x, a, b, gain}});
  };
  for (const Product& p : product_sweep()) add(1, p.rows, p, 3);
  for (const int64_t documents : {2, 3, 8}) add(documents, 5, {0, 17, 16}, 4);
  add(4, 33, {0, 64, 65}, 16);
  for (const int64_t rank : kSizes) add(2, 7, {0, 13, 31}, rank);
  return list;
}

std::vector<OpCase<PickRows>> cases(const PickRows&) {
  std::vector<OpCase<PickRows>> list;  // starts of segments ascend, repeat and leave rows out
  for (const int64_t width : kSizes)
    for (const double segment : {1.0, 3.0}) list.push_back({{}, {segments(23, segment), uniform({23, width})}});
  list.push_back({{}, {segments(9, 2), uniform({200, 16})}});
  list.push_back({{}, {segments(1, 1), uniform({1, 8})}});
  return list;
}

std::vector<OpCase<SegmentTiles>> cases(const SegmentTiles&) {
  std::vector<OpCase<SegmentTiles>> list;
  for (const int64_t rows : {1, 63, 64, 65, 127, 128, 129, 300, 1000, 5000})
    for (const double segment : {1.0, 2.0, 30.0, 64.0, 200.0, 1e9})
      list.push_back({{.row_length = rows}, {segments(rows, segment)}});
  list.push_back({{.row_length = 700}, {segments(700, 5, 400)}});  // a long document before many short ones
  list.push_back({{.row_length = 9000}, {segments(9000, 70)}});
  return list;
}

std::vector<OpCase<DistributionDigest>> cases(const DistributionDigest&) {
  std::vector<OpCase<DistributionDigest>> list;
  for (const int64_t rows : {1, 3, 33})
    for (const int64_t vocab : {1, 2, 7, 8, 9, 61, 1024, 5003})
      for (const double damping : {-1.0, 0.0, 1.5}) {  // −1: no hints
        const Slot hint = damping < 0 ? absent() : hints(rows, vocab),
                   strength = damping < 0 ? absent() : uniform({rows}, 0, 3);
        list.push_back({{.cap = 15, .damping = std::max(0.0, damping)},
                        {uniform({rows, vocab}, -9, 9), uniform({rows}, 8, 12), hint, strength}});
      }
  return list;
}

namespace {

OpCase<OffsetFit> offset_case(const OffsetFit& op, int64_t groups, int64_t rows, int64_t vocab, int64_t width) {
  const Slot state = uniform({groups, width}, -0.1, 0.1);
  const auto wanted = [&](const Slot& slot) { return op.steps > 0 ? slot : absent(); };
  return {op,
          {uniform({vocab, width}), state, state, uniform({groups, width}, 0.001, 0.1),
           wanted(uniform({groups * rows, vocab}, -9, 9)), wanted(indices(groups * rows, vocab, -vocab / 3)),
           wanted(indices(1, 7))}};
}

}  // namespace

std::vector<OpCase<OffsetFit>> cases(const OffsetFit&) {
  std::vector<OpCase<OffsetFit>> list;
  for (const int64_t rows : {1, 5, 40})
    for (const int64_t vocab : {7, 38, 257})
      for (const int64_t width : {1, 16, 33})
        list.push_back(offset_case({.cap = 12, .learning_rate = 0.02, .weight_decay = 0.1, .steps = 3}, 3, rows, vocab, width));
  list.push_back(offset_case({.cap = 50, .steps = 1}, 1, 17, 64, 8));   // e^z needs its cap taken away
  list.push_back(offset_case({.cap = 30, .steps = 2}, 2, 4200, 6, 4));  // more rows to a part than a device takes at once
  list.push_back(offset_case({.steps = 0}, 4, 0, 61, 16));
  return list;
}

std::vector<OpCase<Mlp>> cases(const Mlp&) {
  std::vector<OpCase<Mlp>> list;
  for (const Product& p : product_sweep()) {
    const Slot x = uniform({p.rows, p.inner}), up = uniform({p.outputs, p.inner}), down = uniform({p.inner, p.outputs}),
               scale = uniform({p.inner}, 0.5, 1.5);
    list.push_back({{}, {x, x, up, down, scale}});
    list.push_back({{}, {absent(), x, up, down, scale}});
  }
  return list;
}

std::vector<OpCase<SoftcapCrossEntropy>> cases(const SoftcapCrossEntropy&) {
  std::vector<OpCase<SoftcapCrossEntropy>> list;
  for (const Product& p : product_sweep())
    if (p.outputs > 1)  // one token in the vocabulary: the loss is zero
      for (const Slot& addition : {absent(), uniform({p.rows, p.outputs})})
        for (const Slot& expected : {absent(), shares(p.rows, p.outputs)})
          list.push_back(
              {{.cap = 30},
               {uniform({p.rows, p.inner}), uniform({p.outputs, p.inner}), indices(p.rows, p.outputs), addition, expected},
               {.nmse =
                    expected.content == Content::absent ? 1e-12 : 1e-11}});  // what is expected takes most of a gradient away
  list.push_back(
      {{.cap = 3}, {uniform({7, 16}), uniform({33, 16}, -2, 2), indices(7, 33), absent(), absent()}});  // far into the softcap
  return list;
}

}  // namespace fairway::ops_test
