// gemm against a double-precision product, over layouts, edges, strides, epilogues, instruction sets and thread counts.
#include "ops/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "ops_cpu/helpers.h"

namespace fairway::cpu {
namespace {

struct Shape {
  int64_t m, n, k;
};

struct Case {
  ProductLayout layout = ProductLayout::nt;
  Shape shape{};
  int64_t pad = 0;     // added to every leading dimension
  int64_t offset = 0;  // floats that every operand is pushed off its alignment
  float alpha = 1.0f;
  bool accumulate = false;
  EpilogueKind kind = EpilogueKind::none;
  bool with_scale = true;
  float slope = 0.5f;
};

// Inputs and outputs of one product, made from fixed seeds.
struct Problem {
  explicit Problem(const Case& c)
      : setup(c),
        lda((c.layout == ProductLayout::tn ? c.shape.m : c.shape.k) + c.pad),
        ldb((c.layout == ProductLayout::nt ? c.shape.k : c.shape.n) + c.pad),
        ldc(c.shape.n + c.pad),
        a((c.layout == ProductLayout::tn ? c.shape.k : c.shape.m) * lda, c.offset),
        b((c.layout == ProductLayout::nt ? c.shape.n : c.shape.k) * ldb, c.offset),
        c0(c.shape.m * ldc, c.offset),
        other(c.shape.m * ldc, c.offset),
        scale(c.shape.n, c.offset),
        out(c.shape.m * ldc, c.offset),
        second(c.shape.m * ldc, c.offset) {
    fill_normal(a.get(), a.size(), 1);
    fill_normal(b.get(), b.size(), 2);
    fill_normal(c0.get(), c0.size(), 3);
    fill_normal(other.get(), other.size(), 4);
    fill_normal(scale.get(), scale.size(), 5);
  }

  void run(int threads) {
    std::memcpy(out.get(), c0.get(), sizeof(float) * out.size());
    std::fill_n(second.get(), second.size(), Guarded::kSentinel);
    GemmArgs g;
    g.layout = setup.layout;
    g.m = setup.shape.m, g.n = setup.shape.n, g.k = setup.shape.k;
    g.a = a.get(), g.lda = lda, g.b = b.get(), g.ldb = ldb, g.c = out.get(), g.ldc = ldc;
    g.alpha = setup.alpha, g.accumulate = setup.accumulate;
    g.epilogue.kind = setup.kind;
    g.epilogue.slope = setup.slope;
    if (setup.kind == EpilogueKind::scale_residual && setup.with_scale) g.epilogue.scale = scale.get();
    if (setup.kind != EpilogueKind::none) g.epilogue.other = other.get(), g.epilogue.ld_other = ldc;
    if (setup.kind == EpilogueKind::leaky_relu2) g.epilogue.second = second.get(), g.epilogue.ld_second = ldc;
    ThreadPool pool(threads);
    std::vector<std::byte> workspace(gemm_workspace(threads) + 1);
    gemm(pool, g, workspace.data() + 1);
  }

  double product(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < setup.shape.k; ++p) {
      const double x = setup.layout == ProductLayout::tn ? a.get()[p * lda + i] : a.get()[i * lda + p];
      const double y = setup.layout == ProductLayout::nt ? b.get()[j * ldb + p] : b.get()[p * ldb + j];
      sum += x * y;
    }
    return setup.alpha * sum + (setup.accumulate ? c0.get()[i * ldc + j] : 0.0);
  }

  void check() const {
    ErrorMeter first, slopes;
    for (int64_t i = 0; i < setup.shape.m; ++i) {
      for (int64_t j = 0; j < setup.shape.n; ++j) {
        const double acc = product(i, j), extra = other.get()[i * ldc + j];
        const double slope = acc > 0 ? 2 * acc : 2 * setup.slope * setup.slope * acc;
        double want = acc;
        if (setup.kind == EpilogueKind::scale_residual) want = extra + (setup.with_scale ? scale.get()[j] : 1.0) * acc;
        if (setup.kind == EpilogueKind::multiply) want = acc * extra;
        if (setup.kind == EpilogueKind::leaky_relu2) want = slope * acc / 2;
        first.add(out.get()[i * ldc + j], want);
        if (setup.kind == EpilogueKind::leaky_relu2) slopes.add(second.get()[i * ldc + j], slope);
      }
      for (int64_t j = setup.shape.n; j < ldc; ++j) {  // the padding between rows belongs to someone else
        ASSERT_EQ(out.get()[i * ldc + j], c0.get()[i * ldc + j]);
        ASSERT_EQ(second.get()[i * ldc + j], Guarded::kSentinel);
      }
    }
    // Unit normal inputs make the mean square of a product K.
    EXPECT_LE(first.nmse(0.25 * setup.shape.m * setup.shape.n * setup.shape.k), 1e-12);
    EXPECT_LE(slopes.nmse(), 1e-12);
    EXPECT_TRUE(out.intact() && second.intact());
  }

  Case setup;
  int64_t lda, ldb, ldc;
  Guarded a, b, c0, other, scale, out, second;
};

std::string describe(const Case& c) {
  return "layout " + std::to_string(static_cast<int>(c.layout)) + " m " + std::to_string(c.shape.m) + " n " +
         std::to_string(c.shape.n) + " k " + std::to_string(c.shape.k) + " pad " + std::to_string(c.pad) + " offset " +
         std::to_string(c.offset) + " epilogue " + std::to_string(static_cast<int>(c.kind));
}

void expect_right(const Case& c, int threads) {
  SCOPED_TRACE(describe(c));
  Problem problem(c);
  problem.run(threads);
  problem.check();
}

constexpr ProductLayout kLayouts[] = {ProductLayout::nt, ProductLayout::nn, ProductLayout::tn};

class Gemm : public IsaTest {};

TEST_P(Gemm, MatchesDoubleOverEdgeSizes) {
  const auto& kernel = GetParam()->gemm;
  const int64_t rows[] = {1, 2, kernel.mr - 1, kernel.mr + 1, 31, 67};
  const int64_t columns[] = {1, 3, kernel.nr - 1, kernel.nr + 1, 71};
  const int64_t depths[] = {1, 2, 5, 67};
  for (ProductLayout layout : kLayouts) {
    for (int64_t m : rows) {
      for (int64_t n : columns) {
        for (int64_t k : depths) {
          expect_right({.layout = layout, .shape = {m, n, k}, .pad = (m + n) % 3, .offset = (m + k) % 4}, 1);
        }
      }
    }
  }
}

TEST_P(Gemm, MatchesDoubleAcrossChunksOfK) {
  const int64_t chunk = GetParam()->gemm.max_k;
  for (ProductLayout layout : kLayouts) {
    for (int64_t k : {chunk - 1, chunk, chunk + 1, 2 * chunk + 3}) {
      for (bool accumulate : {false, true}) {
        expect_right({.layout = layout, .shape = {29, 45, k}, .pad = 5, .offset = 1, .alpha = -0.75f, .accumulate = accumulate},
                     2);
      }
    }
  }
}

TEST_P(Gemm, MatchesDoubleWhenBMustBePackedInPieces) {
  expect_right({.layout = ProductLayout::nt, .shape = {5, 9001, 257}, .pad = 1}, 2);
  expect_right({.layout = ProductLayout::tn, .shape = {17, 1031, 4099}, .pad = 1}, 2);
}

// Sums over many rows with a small result take a path of their own: K in parts.
TEST_P(Gemm, SumsOverManyRowsMatchDouble) {
  for (Shape shape : {Shape{1, 1, 1024}, Shape{7, 65, 1025}, Shape{67, 129, 1151}, Shape{131, 17, 2049}}) {
    for (bool accumulate : {false, true}) {
      expect_right({.layout = ProductLayout::tn,
                    .shape = shape,
                    .pad = 3,
                    .offset = 1,
                    .alpha = accumulate ? -0.75f : 1.0f,
                    .accumulate = accumulate},
                   2);
    }
  }
}

TEST_P(Gemm, SumsOverManyRowsDoNotDependOnThreads) {
  for (Shape shape : {Shape{67, 129, 1151}, Shape{500, 64, 2048}}) {
    Problem problem({.layout = ProductLayout::tn, .shape = shape, .accumulate = true});
    problem.run(1);
    const Guarded one = problem.out;
    for (int threads : {2, 5, 16}) {
      problem.run(threads);
      EXPECT_EQ(std::memcmp(one.get(), problem.out.get(), sizeof(float) * one.size()), 0) << threads << " threads";
    }
  }
}

// So large that results are written past the caches.
TEST_P(Gemm, LargeResultsMatchDouble) {
  for (EpilogueKind kind : {EpilogueKind::none, EpilogueKind::leaky_relu2, EpilogueKind::multiply}) {
    for (int64_t offset : {0, 1}) expect_right({.shape = {2049, 1024, 3}, .offset = offset, .kind = kind}, 2);
  }
}

TEST_P(Gemm, EpiloguesMatchDouble) {
  const int64_t chunk = GetParam()->gemm.max_k;
  for (ProductLayout layout : kLayouts) {
    for (EpilogueKind kind : {EpilogueKind::scale_residual, EpilogueKind::leaky_relu2, EpilogueKind::multiply}) {
      for (Shape shape : {Shape{3, 5, 7}, Shape{61, 97, 64}, Shape{30, 66, 2 * chunk + 1}}) {
        expect_right({.layout = layout, .shape = shape, .pad = 3, .kind = kind}, 2);
        expect_right({.layout = layout,
                      .shape = shape,
                      .offset = 3,
                      .accumulate = true,
                      .kind = kind,
                      .with_scale = false,
                      .slope = 0.0f},
                     2);
      }
    }
  }
}

TEST_P(Gemm, BitsDoNotDependOnThreads) {
  const int64_t chunk = GetParam()->gemm.max_k;
  for (ProductLayout layout : kLayouts) {
    for (Shape shape : {Shape{203, 131, 67}, Shape{64, 64, 3 * chunk + 5}, Shape{7, 300, 40}}) {
      Problem problem({.layout = layout, .shape = shape});
      problem.run(1);
      const Guarded one = problem.out;
      for (int threads : {2, 3, 5}) {
        problem.run(threads);
        EXPECT_EQ(std::memcmp(one.get(), problem.out.get(), sizeof(float) * one.size()), 0) << threads << " threads";
      }
    }
  }
}

TEST_P(Gemm, NanInOneRowStaysInThatRow) {
  Problem problem({.layout = ProductLayout::nt, .shape = {20, 40, 33}});
  problem.a.get()[7 * problem.lda + 3] = std::numeric_limits<float>::quiet_NaN();
  problem.run(2);
  for (int64_t i = 0; i < 20; ++i) {
    for (int64_t j = 0; j < 40; ++j) EXPECT_EQ(std::isnan(problem.out.get()[i * problem.ldc + j]), i == 7);
  }
}

TEST_P(Gemm, BatchedIsManyProducts) {
  constexpr int64_t kCount = 3, kM = 9, kN = 33, kK = 17;
  Guarded a(kCount * kM * kK), b(kCount * kN * kK), c(kCount * kM * kN), single(kM * kN);
  fill_normal(a.get(), a.size(), 1);
  fill_normal(b.get(), b.size(), 2);
  ThreadPool pool(2);
  std::vector<std::byte> workspace(gemm_workspace(2));
  GemmArgs g{.m = kM, .n = kN, .k = kK, .a = a.get(), .lda = kK, .b = b.get(), .ldb = kK, .c = c.get(), .ldc = kN};
  gemm_batched(pool, g, {.count = kCount, .stride_a = kM * kK, .stride_b = kN * kK, .stride_c = kM * kN}, workspace.data());
  for (int64_t i = 0; i < kCount; ++i) {
    g.a = a.get() + i * kM * kK, g.b = b.get() + i * kN * kK, g.c = single.get();
    gemm(pool, g, workspace.data());
    EXPECT_EQ(std::memcmp(single.get(), c.get() + i * kM * kN, sizeof(float) * kM * kN), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Gemm, testing::ValuesIn(available_kernels()), isa_test_name);

}  // namespace
}  // namespace fairway::cpu
