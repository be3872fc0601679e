// Attention against a double-precision softmax over every visible key, with its gradients.
#include "ops/cpu/flash.h"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ops_cpu/helpers.h"

namespace fairway::cpu {
namespace {

struct Case {
  int64_t batch = 1, time = 1, heads = 2, kv_heads = 1, head_size = 16;
  int64_t segment = 0;  // rows of the first segment; later ones differ. 0: no segments
  float spread = 1.0f;  // of the queries: large ones make the softmax sharp
  double tolerance = 1e-12;
};

struct Problem {
  explicit Problem(const Case& c)
      : shape{c.batch * c.time, c.time, c.heads, c.kv_heads, c.head_size, 1.0f / std::sqrt(static_cast<float>(c.head_size))},
        wide(shape.rows * c.heads * c.head_size),
        narrow(shape.rows * c.kv_heads * c.head_size),
        q(wide, 1),
        k(narrow, 2),
        v(narrow, 3),
        dy(wide),
        y(wide),
        lse(shape.rows * c.heads),
        dq(wide, 1),
        dk(narrow),
        dv(narrow, 5) {
    fill_normal(q.get(), wide, 1);
    for (int64_t i = 0; i < wide; ++i) q.get()[i] *= c.spread;
    fill_normal(k.get(), narrow, 2);
    fill_normal(v.get(), narrow, 3);
    fill_normal(dy.get(), wide, 4);
    for (int64_t row = 0, begin = 0, length = c.segment; c.segment > 0 && row < shape.rows; ++row) {
      if (row == begin + length) begin = row, length = 1 + (length * 7 + 3) % (2 * c.segment);
      starts.push_back(static_cast<int32_t>(begin));
    }
  }

  int64_t start(int64_t row) const { return starts.empty() ? row / shape.row_length * shape.row_length : starts[row]; }
  const int32_t* segments() const { return starts.empty() ? nullptr : starts.data(); }

  void forward(int threads) {
    ThreadPool pool(threads);
    std::vector<std::byte> workspace(flash_forward_workspace(shape) + 1);
    flash_forward(
        pool,
        {.shape = shape, .q = q.get(), .k = k.get(), .v = v.get(), .segment_start = segments(), .y = y.get(), .lse = lse.get()},
        workspace.data() + 1);
  }

  void backward(int threads, bool add = false) {
    ThreadPool pool(threads);
    std::vector<std::byte> workspace(flash_backward_workspace(shape) + 1);
    FlashBackward b{.shape = shape,
                    .q = q.get(),
                    .k = k.get(),
                    .v = v.get(),
                    .segment_start = segments(),
                    .z = y.get(),
                    .dz = dy.get(),
                    .lse = lse.get(),
                    .dy = dy.get()};
    b.dq = dq.get(), b.dk = dk.get(), b.dv = dv.get();
    b.add_dq = b.add_dk = b.add_dv = add;
    flash_backward(pool, b, workspace.data() + 1);
  }

  FlashShape shape;
  int64_t wide, narrow;
  Guarded q, k, v, dy, y, lse, dq, dk, dv;
  std::vector<int32_t> starts;
};

// The definition, one query at a time.
struct Truth {
  explicit Truth(const Problem& p) : y(p.wide), lse(p.shape.rows * p.shape.heads), dq(p.wide), dk(p.narrow), dv(p.narrow) {
    for (int64_t row = 0; row < p.shape.rows; ++row) {
      for (int64_t head = 0; head < p.shape.heads; ++head) add_query(p, row, head);
    }
  }

  void add_query(const Problem& p, int64_t row, int64_t head) {
    const FlashShape& s = p.shape;
    const int64_t e = s.head_size, at = (row * s.heads + head) * e, first = p.start(row);
    const auto kv = [&](int64_t key) { return (key * s.kv_heads + head / (s.heads / s.kv_heads)) * e; };
    std::vector<double> weight(row + 1);
    double top = -1e300, total = 0, mean = 0;
    for (int64_t key = first; key <= row; ++key) {
      for (int64_t i = 0; i < e; ++i) weight[key] += double{p.q.get()[at + i]} * p.k.get()[kv(key) + i] * s.scale;
      top = std::max(top, weight[key]);
    }
    for (int64_t key = first; key <= row; ++key) total += weight[key] = std::exp(weight[key] - top);
    lse[row * s.heads + head] = top + std::log(total);
    for (int64_t key = first; key <= row; ++key) {
      weight[key] /= total;
      for (int64_t i = 0; i < e; ++i) y[at + i] += weight[key] * p.v.get()[kv(key) + i];
    }
    for (int64_t i = 0; i < e; ++i) mean += y[at + i] * p.dy.get()[at + i];
    for (int64_t key = first; key <= row; ++key) {
      double dweight = 0;
      for (int64_t i = 0; i < e; ++i) dweight += double{p.dy.get()[at + i]} * p.v.get()[kv(key) + i];
      const double dscore = weight[key] * (dweight - mean) * s.scale;
      for (int64_t i = 0; i < e; ++i) {
        dv[kv(key) + i] += weight[key] * p.dy.get()[at + i];
        dk[kv(key) + i] += dscore * p.q.get()[at + i];
        dq[at + i] += dscore * p.k.get()[kv(key) + i];
      }
    }
  }

  std::vector<double> y, lse, dq, dk, dv;
};

void expect_near(const Guarded& got, const std::vector<double>& truth, const char* name, double tolerance, double scale = 1.0) {
  ErrorMeter meter;
  for (int64_t i = 0; i < got.size(); ++i) meter.add(got.get()[i], scale * truth[i]);
  // A row that sees only itself has no gradient with respect to q and k, so there is nothing to be relative to.
  EXPECT_LE(meter.nmse(0.1 * static_cast<double>(got.size())), tolerance) << name;
  EXPECT_TRUE(got.intact()) << name;
}

void expect_right(const Case& c) {
  SCOPED_TRACE("B " + std::to_string(c.batch) + " T " + std::to_string(c.time) + " H " + std::to_string(c.heads) + " K " +
               std::to_string(c.kv_heads) + " E " + std::to_string(c.head_size) + " segment " + std::to_string(c.segment));
  Problem p(c);
  const Truth truth(p);
  p.forward(2);
  expect_near(p.y, truth.y, "y", c.tolerance);
  expect_near(p.lse, truth.lse, "lse", c.tolerance);
  p.backward(2);
  expect_near(p.dq, truth.dq, "dq", c.tolerance);
  expect_near(p.dk, truth.dk, "dk", c.tolerance);
  expect_near(p.dv, truth.dv, "dv", c.tolerance);
  p.backward(2, true);
  expect_near(p.dq, truth.dq, "dq added", c.tolerance, 2.0);
  expect_near(p.dk, truth.dk, "dk added", c.tolerance, 2.0);
  expect_near(p.dv, truth.dv, "dv added", c.tolerance, 2.0);
}

class Flash : public IsaTest {};

TEST_P(Flash, MatchesDoubleOverLengths) {
  for (int64_t time : {1, 2, 7, 47, 48, 49, 96, 97, 150, 211}) expect_right({.batch = 2, .time = time});
}

TEST_P(Flash, MatchesDoubleOverHeads) {
  for (int64_t head_size : {8, 16, 24, 40, 64, 128}) {
    expect_right({.time = 61, .heads = 4, .kv_heads = 2, .head_size = head_size});
    expect_right({.batch = 2, .time = 53, .heads = 3, .kv_heads = 3, .head_size = head_size});
    expect_right({.time = 33, .heads = 4, .kv_heads = 1, .head_size = head_size});
  }
}

TEST_P(Flash, MatchesDoubleWithSegments) {
  for (int64_t segment : {1, 5, 30, 100, 150, 600}) {
    expect_right({.time = 431, .segment = segment});
    expect_right({.batch = 3, .time = 200, .heads = 2, .kv_heads = 2, .head_size = 8, .segment = segment});
  }
}

// Scores near 60 leave the saved log-sum-exp, and so every weight, with 60 times the relative error of a float.
TEST_P(Flash, MatchesDoubleWhenOneKeyTakesAll) {
  expect_right({.time = 130, .head_size = 32, .spread = 20.0f, .tolerance = 3e-10});
}

TEST_P(Flash, BitsDoNotDependOnThreads) {
  for (int64_t segment : {0, 90}) {
    Problem p({.batch = 2, .time = 301, .heads = 4, .kv_heads = 2, .head_size = 32, .segment = segment});
    p.forward(1);
    p.backward(1);
    const Guarded y = p.y, lse = p.lse, dq = p.dq, dk = p.dk, dv = p.dv;
    const auto same = [](const Guarded& a, const Guarded& b) {
      return std::memcmp(a.get(), b.get(), sizeof(float) * a.size()) == 0;
    };
    for (int threads : {2, 3, 7}) {
      p.forward(threads);
      p.backward(threads);
      EXPECT_TRUE(same(y, p.y) && same(lse, p.lse) && same(dq, p.dq) && same(dk, p.dk) && same(dv, p.dv)) << threads;
    }
  }
}

TEST_P(Flash, UnwantedGradientsAreLeftOut) {
  Problem p({.time = 70});
  p.forward(1);
  p.backward(1);
  const Guarded dv = p.dv;
  ThreadPool pool(1);
  std::vector<std::byte> workspace(flash_backward_workspace(p.shape));
  FlashBackward b{.shape = p.shape,
                  .q = p.q.get(),
                  .k = p.k.get(),
                  .v = p.v.get(),
                  .z = p.y.get(),
                  .dz = p.dy.get(),
                  .lse = p.lse.get(),
                  .dy = p.dy.get()};
  b.dv = p.dv.get();
  flash_backward(pool, b, workspace.data());
  EXPECT_EQ(std::memcmp(dv.get(), p.dv.get(), sizeof(float) * dv.size()), 0);
}

TEST(FlashArguments, StartsThatDecreaseOrLieAheadAreRefused) {
  Problem p({.time = 40, .segment = 7});
  p.starts[20] = 3;
  EXPECT_THROW(p.forward(1), std::logic_error);
  p.starts = Problem({.time = 40, .segment = 7}).starts;
  p.starts[39] = 40;
  EXPECT_THROW(p.backward(1), std::logic_error);
}

INSTANTIATE_TEST_SUITE_P(Isa, Flash, testing::ValuesIn(available_kernels()), isa_test_name);

}  // namespace
}  // namespace fairway::cpu
