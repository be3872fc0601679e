// The MLP in bf16 on the device, both with fused products and without, within twice the error of a plain run that rounds every
// intermediate tensor to bf16.
#include <bit>
#include <cmath>

#include "base/rng.h"
#include "ops/cpu/cpu.h"
#include "ops/cuda/mlp_saved.h"
#include "ops_cuda/cuda_backend.h"

namespace fairway::ops_test {
namespace {

struct Sizes {
  int64_t rows, width, hidden;
};

uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }

// A matrix on the host.
struct Matrix {
  int64_t rows, cols;
  std::vector<float> at;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), at(static_cast<size_t>(r * c)) {}
  Matrix(int64_t r, int64_t c, uint64_t seed, double size) : Matrix(r, c) {
    Rng rng(seed);
    for (float& x : at) x = from_bf16(to_bf16(static_cast<float>(size * rng.normal())));
  }
  Tensor tensor() { return make_view(at.data(), {{rows, cols}, DType::f32}); }
  Matrix rounded(bool wanted = true) const {
    Matrix out = *this;
    if (wanted)
      for (float& x : out.at) x = from_bf16(to_bf16(x));
    return out;
  }
  Matrix transposed() const {
    Matrix out(cols, rows);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) out.at[static_cast<size_t>(j * rows + i)] = at[static_cast<size_t>(i * cols + j)];
    return out;
  }
};

// a·bᵀ.
Matrix product(Matrix a, Matrix b, Queue& queue) {
  Matrix out(a.rows, b.rows);
  std::vector<float> ones(static_cast<size_t>(b.rows), 1.0F);
  cpu::forward(ProjectResidual{},
               {{{}, a.tensor(), b.tensor(), make_view(ones.data(), {{b.rows}, DType::f32})}, {out.tensor()}, {}, {}, &queue});
  return out;
}

struct Inputs {
  Matrix x, m, up, down, scale, g;
  explicit Inputs(const Sizes& s)
      : x(s.rows, s.width, 1, 1),
        m(s.rows, s.width, 2, 1),
        up(s.hidden, s.width, 3, 0.05),
        down(s.width, s.hidden, 4, 0.05),
        scale(1, s.width, 5, 1),
        g(s.rows, s.width, 6, 1) {}
};
struct Results {
  Matrix y, dx, dm, dup, ddown, dscale;
};

// In float; with `halves` every tensor between is rounded.
Results plain(const Inputs& in, bool halves, Queue& queue) {
  Matrix weight = in.down;
  for (size_t i = 0; i < weight.at.size(); ++i) weight.at[i] *= in.scale.at[i / static_cast<size_t>(weight.cols)];
  weight = weight.rounded(halves);
  const Matrix pre = product(in.m, in.up, queue).rounded(halves);
  Matrix post = pre, slope = pre;
  for (size_t i = 0; i < post.at.size(); ++i) {
    slope.at[i] = pre.at[i] > 0 ? 2 * pre.at[i] : 0.5F * pre.at[i];
    post.at[i] = 0.5F * slope.at[i] * pre.at[i];
  }
  post = post.rounded(halves);
  Matrix y = product(post, weight, queue);
  for (size_t i = 0; i < y.at.size(); ++i) y.at[i] += in.x.at[i];
  Matrix dpre = product(in.g, weight.transposed(), queue).rounded(halves);
  for (size_t i = 0; i < dpre.at.size(); ++i) dpre.at[i] *= slope.at[i];
  dpre = dpre.rounded(halves);
  Matrix ddown = product(in.g.transposed(), post.transposed(), queue), dscale = in.scale;
  for (int64_t i = 0; i < ddown.rows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < ddown.cols; ++j) {
      const auto k = static_cast<size_t>(i * ddown.cols + j);
      total += static_cast<double>(ddown.at[k]) * static_cast<double>(in.down.at[k]);
      ddown.at[k] *= in.scale.at[static_cast<size_t>(i)];
    }
    dscale.at[static_cast<size_t>(i)] = static_cast<float>(total);
  }
  return {y.rounded(halves),
          in.g,
          product(dpre, in.up.transposed(), queue).rounded(halves),
          product(dpre.transposed(), in.m.transposed(), queue),
          ddown,
          dscale};
}

// A bf16 tensor's memory on the host.
struct Halves {
  Spec spec;
  std::vector<uint16_t> at;
  explicit Halves(const Matrix& from) : spec{{from.rows, from.cols}, DType::bf16} {
    for (float x : from.at) at.push_back(to_bf16(x));
  }
  Tensor tensor() { return make_view(at.data(), spec); }
  Matrix matrix() const {
    Matrix out(spec.shape.rows(), spec.shape.last());
    for (size_t i = 0; i < at.size(); ++i) out.at[i] = from_bf16(at[i]);
    return out;
  }
};

Results on_device(const Inputs& in, const Sizes& s, bool keep_signs) {
  Halves x(in.x), m(in.m), up(in.up), down(in.down), g(in.g), y(in.x), dx(in.x), dm(in.x), post(Matrix(s.rows, s.hidden));
  Matrix scale = in.scale, dup(s.hidden, s.width), ddown(s.width, s.hidden), dscale = in.scale;
  const Spec kept = cuda::signs_spec(post.spec);
  std::vector<uint8_t> signs(kept.bytes()), workspace(post.spec.bytes());
  const auto vector = [&](Matrix& v) { return make_view(v.at.data(), {{s.width}, DType::f32}); };
  const Mlp::In inputs{x.tensor(), m.tensor(), up.tensor(), down.tensor(), vector(scale)};
  const Mlp::Saved saved{keep_signs ? make_view(signs.data(), kept) : Tensor{}, post.tensor()};
  run_forward(Mlp{}, {inputs, {y.tensor()}, saved, {}, nullptr});
  if (keep_signs)
    run_backward(Mlp{}, {inputs,
                         {y.tensor()},
                         saved,
                         {g.tensor()},
                         {dx.tensor(), dm.tensor(), dup.tensor(), ddown.tensor(), vector(dscale)},
                         make_view(workspace.data(), {{static_cast<int64_t>(workspace.size())}, DType::u8}),
                         nullptr});
  return {y.matrix(), dx.matrix(), dm.matrix(), dup, ddown, dscale};
}

double error_of(const Matrix& have, const Matrix& want) {
  double error = 0, power = 0;
  for (size_t i = 0; i < want.at.size(); ++i) {
    error += std::pow(static_cast<double>(have.at[i]) - static_cast<double>(want.at[i]), 2);
    power += std::pow(static_cast<double>(want.at[i]), 2);
  }
  return std::sqrt(error / power);
}

class CudaMlpBf16 : public testing::TestWithParam<Sizes> {};

TEST_P(CudaMlpBf16, IsWithinTwiceTheErrorOfRounding) {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  Queue queue(8);
  const Inputs in(GetParam());
  const Results truth = plain(in, false, queue), naive = plain(in, true, queue), have = on_device(in, GetParam(), true);
  const auto check = [&](const char* name, Matrix Results::*what) {
    const double error = error_of(have.*what, truth.*what), allowed = 2 * error_of(naive.*what, truth.*what) + 1e-6;
    EXPECT_TRUE(error <= allowed) << name << ": " << error << ", allowed " << allowed;
  };
  check("y", &Results::y);
  check("dx", &Results::dx);
  check("dm", &Results::dm);
  check("dup", &Results::dup);
  check("ddown", &Results::ddown);
  check("dscale", &Results::dscale);
}

TEST_P(CudaMlpBf16, RepeatsItselfWithAndWithoutSigns) {
  if (!has_device()) GTEST_SKIP() << "no CUDA device";
  const Inputs in(GetParam());
  const Results one = on_device(in, GetParam(), true), two = on_device(in, GetParam(), true);
  EXPECT_TRUE(one.y.at == two.y.at);
  EXPECT_TRUE(one.dm.at == two.dm.at);
  EXPECT_TRUE(one.dup.at == two.dup.at);
  EXPECT_TRUE(on_device(in, GetParam(), false).y.at == one.y.at) << "without signs";
}

// Fused with a last tile that is not full; fused with clusters that share the tails of strips; and a product with a pass after
// it, whole bytes of signs and not.
INSTANTIATE_TEST_SUITE_P(Sizes, CudaMlpBf16,
                         testing::Values(Sizes{1101, 512, 512}, Sizes{2900, 512, 1792}, Sizes{1101, 128, 96},
                                         Sizes{71, 40, 37}),
                         [](const auto& one) {
                           const Sizes& s = one.param;
                           return std::to_string(s.rows) + "x" + std::to_string(s.width) + "x" + std::to_string(s.hidden);
                         });

}  // namespace
}  // namespace fairway::ops_test
