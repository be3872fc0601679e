// Cases of the ops that work row by row.
#include "ops/op_case.h"

namespace fairway::ops_test {
namespace {

struct Rows {
  int64_t sequences, length, width;
  int64_t count() const { return sequences * length; }
  Shape shape() const { return {count(), width}; }
};

std::vector<Rows> row_sweep() {
  std::vector<Rows> sweep;
  for (int64_t size : kSizes) {
    sweep.push_back({1, size, 5});
    sweep.push_back({2, 3, size});
  }
  sweep.push_back({3, 43, 129});
  return sweep;
}

// The norm of a single number leaves nothing but rounding noise of its gradient, unless eps is as large as the number.
double eps_for(int64_t width) { return width == 1 ? 1 : kRmsEps; }

struct HeadCase {
  Rows rows;  // width is the head size
  int64_t heads, kv_heads;
  Shape query() const { return {rows.count(), heads * rows.width}; }
  Shape value() const { return {rows.count(), kv_heads * rows.width}; }
};

std::vector<HeadCase> head_sweep() {
  std::vector<HeadCase> sweep;
  for (const Rows& rows : row_sweep()) sweep.push_back({rows, 2, 1});
  sweep.push_back({{2, 7, 8}, 1, 1});
  sweep.push_back({{2, 7, 16}, 4, 4});
  sweep.push_back({{1, 13, 64}, 6, 2});
  return sweep;
}

template <class Op, class Make>
std::vector<OpCase<Op>> each(const std::vector<Rows>& sweep, Make&& make) {
  std::vector<OpCase<Op>> list;
  for (const Rows& rows : sweep) list.push_back(make(rows));
  return list;
}

}  // namespace

std::vector<OpCase<Embed>> cases(const Embed&) {
  return each<Embed>(row_sweep(), [](Rows r) { return OpCase<Embed>{{}, {indices(r.count(), 11), uniform({11, r.width})}}; });
}

std::vector<OpCase<Add>> cases(const Add&) {
  return each<Add>(row_sweep(), [](Rows r) { return OpCase<Add>{{}, {uniform(r.shape()), uniform(r.shape())}}; });
}

std::vector<OpCase<SmearGate>> cases(const SmearGate&) {
  return each<SmearGate>(row_sweep(), [](Rows r) {
    return OpCase<SmearGate>{{.row_length = r.length}, {uniform(r.shape()), uniform({r.width}, -2, 2)}};
  });
}

std::vector<OpCase<SmearGateInput>> cases(const SmearGateInput&) {
  const std::vector<Rows> sweep = row_sweep();
  const auto make = [](Rows r, int32_t bos) {
    const int64_t gated = r.width < 12 ? r.width : 12;
    return OpCase<SmearGateInput>{{.row_length = r.length, .bos = bos},
                                  {indices(r.count(), 5), uniform(r.shape()), uniform({gated}, -2, 2), uniform({1}, 0.5, 1)}};
  };
  auto list = each<SmearGateInput>(sweep, [&](Rows r) { return make(r, 1); });
  for (const Rows& r : sweep) list.push_back(make(r, SmearGateInput::kNoToken));
  return list;
}

std::vector<OpCase<RmsNorm>> cases(const RmsNorm&) {
  auto list = each<RmsNorm>(row_sweep(), [](Rows r) {
    return OpCase<RmsNorm>{{.scale = 0.7, .eps = eps_for(r.width)}, {uniform(r.shape())}};
  });
  list.push_back({{.scale = 1}, {uniform({7, 16}, -0.01, 0.01)}});  // as small as initial embeddings: eps counts
  return list;
}

std::vector<OpCase<MixNorm>> cases(const MixNorm&) {
  return each<MixNorm>(row_sweep(), [](Rows r) {
    return OpCase<MixNorm>{{.scale = 0.6, .eps = eps_for(r.width)},
                           {uniform(r.shape()), uniform(r.shape()), uniform({2, r.width})}};
  });
}

std::vector<OpCase<ValueMix>> cases(const ValueMix&) {
  return each<ValueMix>(row_sweep(), [](Rows r) {
    return OpCase<ValueMix>{{}, {uniform(r.shape()), uniform(r.shape(), 0, 1), uniform({1}, 0.1, 1)}};
  });
}

std::vector<OpCase<QkNormRope>> cases(const QkNormRope&) {
  std::vector<OpCase<QkNormRope>> list;
  for (const HeadCase& c : head_sweep()) {
    const int64_t even = c.rows.width / 2 * 2, rotated = even < 16 ? even : 16;
    if (rotated == 0) continue;
    list.push_back({{.row_length = c.rows.length, .head_dim = c.rows.width},
                    {uniform(c.query()), uniform(c.value()), uniform({c.heads}, 0.5, 2), rope(c.rows.length + 1, rotated)}});
  }
  return list;
}

std::vector<OpCase<GateLogits>> cases(const GateLogits&) {
  std::vector<OpCase<GateLogits>> list;
  for (const HeadCase& c : head_sweep())
    list.push_back({{}, {uniform(c.rows.shape()), uniform({c.heads, c.rows.width < 12 ? c.rows.width : 12}, -2, 2)}});
  return list;
}

std::vector<OpCase<HeadOutput>> cases(const HeadOutput&) {
  std::vector<OpCase<HeadOutput>> list;
  for (const HeadCase& c : head_sweep()) {
    const HeadOutput op{.heads = c.heads, .kv_heads = c.kv_heads};
    const auto logit = uniform({c.rows.count(), c.heads}, -2, 2);
    list.push_back({op, {uniform(c.query()), absent(), logit}});
    if (c.rows.width == 1) continue;  // with one dim the exclusive output is rounding noise around zero
    list.push_back({op, {uniform(c.query()), uniform(c.value()), absent()}});
    list.push_back({op, {uniform(c.query()), uniform(c.value()), logit}});
  }
  return list;
}

std::vector<OpCase<Skip>> cases(const Skip&) {
  auto list = each<Skip>(row_sweep(), [](Rows r) {
    return OpCase<Skip>{{}, {uniform(r.shape()), uniform(r.shape()), uniform({r.width}), uniform({r.width}, -2, 2)}};
  });
  for (const Rows& r : row_sweep())  // the gradient of a single weight is one number, and may nearly cancel
    list.push_back(
        {{}, {uniform(r.shape()), uniform(r.shape()), uniform({r.width}), absent()}, {.noise = r.width == 1 ? 3e-7 : 0}});
  return list;
}

std::vector<OpCase<LaneMix>> cases(const LaneMix&) {
  return each<LaneMix>(row_sweep(), [](Rows r) {
    const Slot lane = uniform(r.shape(), -0.5, 1);
    return OpCase<LaneMix>{{}, {lane, lane, lane, lane, uniform({2}, 0.5, 1.5), uniform({2, 2}, 0.5, 1.5)}};
  });
}

std::vector<OpCase<LaneMerge>> cases(const LaneMerge&) {
  return each<LaneMerge>(row_sweep(), [](Rows r) { return OpCase<LaneMerge>{{}, {uniform(r.shape()), uniform(r.shape())}}; });
}

std::vector<OpCase<FakeQuant>> cases(const FakeQuant&) {
  auto list = each<FakeQuant>(row_sweep(), [](Rows r) { return OpCase<FakeQuant>{{.levels = 31}, {uniform(r.shape())}}; });
  list.push_back({{.levels = 31, .scale_floor = 1.0 / 31}, {uniform({7, 33}, -0.4, 0.4)}});
  list.push_back({{.levels = 7}, {uniform({5, 65})}});
  for (const Rows r : row_sweep()) list.push_back({{.levels = 31, .deviations = 1.7, .half_step = true}, {uniform(r.shape())}});
  list.push_back({{.levels = 15, .deviations = 12.85, .half_step = true}, {uniform({9, 131}, -0.02, 0.03)}});
  list.push_back({{.levels = 31, .scale_floor = 1e-6, .half_step = true}, {uniform({3, 40}, -1e-4, 1e-4)}});
  return list;
}

}  // namespace fairway::ops_test
