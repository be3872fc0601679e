// Products with packed integer rows: exact but for the rounding of the vector, and the same bits from every instruction set and
// however the rows are divided.
#include "ops/cpu/packed_rows.h"

#include <cmath>

#include "base/rng.h"
#include "ops_cpu/helpers.h"

namespace fairway::cpu {
namespace {

struct Matrix {
  Matrix(int64_t rows, int64_t cols, int bits, uint64_t seed = 1)
      : scale(static_cast<size_t>((rows + 15) / 16 * 16)),
        packed(packed_bytes(packed_form(bits), rows, cols) + 64),
        view{.form = packed_form(bits), .rows = rows, .cols = cols} {
    Rng rng(seed);
    const int level = (1 << (bits - 1)) - 1;
    for (int64_t i = 0; i < rows * cols; ++i)
      q.push_back(static_cast<int8_t>(static_cast<int>(rng.below(static_cast<uint64_t>(2 * level + 1))) - level));
    for (float& s : scale) s = static_cast<float>(rng.below(1000) + 1) * 0x1p-14F;  // exact as halves
    auto* data = packed.data() + (64 - reinterpret_cast<uintptr_t>(packed.data()) % 64) % 64;
    pack_rows(view, q.data(), {0, view.row_tiles()}, data);
    view.data = data, view.scale = scale.data();
  }
  double truth(int64_t row, const std::vector<float>& x, double& size) const {
    double sum = 0;
    size = 0;
    for (int64_t j = 0; j < view.cols; ++j) {
      const double term =
          static_cast<double>(q[static_cast<size_t>(row * view.cols + j)]) * static_cast<double>(x[static_cast<size_t>(j)]);
      sum += term, size = std::max(size, std::abs(static_cast<double>(x[static_cast<size_t>(j)])));
    }
    return sum * static_cast<double>(scale[static_cast<size_t>(row)]);
  }
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<uint8_t> packed;
  PackedRows view;
};

std::vector<float> random_vector(int64_t cols, uint64_t seed) {
  Rng rng(seed);
  std::vector<float> x;
  for (int64_t i = 0; i < cols; ++i) x.push_back(static_cast<float>(rng.normal()));
  return x;
}

std::vector<float> product(const Matrix& w, const std::vector<float>& x) {
  DigitVector digits(w.view.cols);
  digits.assign(x.data(), w.view.cols);
  std::vector<float> y(static_cast<size_t>(w.view.rows), NAN);
  multiply(w.view, digits, {0, w.view.row_tiles()}, y.data());
  return y;
}

constexpr int64_t kSizes[][2] = {{1, 1}, {16, 16}, {17, 15}, {40, 33}, {33, 100}, {48, 512}, {5, 1792}};

class PackedRowsTest : public IsaTest {};

// Weights that nearly all fit into four bits: the list beside the tiles gives the same products and rows as six bits do.
TEST_P(PackedRowsTest, ListsTheFewThatDoNotFit) {
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{40, 512}, {33, 1001}, {16, 1600}}) {
    Matrix w(rows, cols, 6);
    Rng rng(3);
    for (int8_t& q : w.q) q = static_cast<int8_t>(rng.below(300) == 0 ? static_cast<int>(rng.below(63)) - 31 : q / 4);
    std::vector<uint8_t> memory(packed_bytes(PackedForm::six, rows, cols) + 64);
    auto* data = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    PackedRows narrow = pack_matrix(w.q.data(), rows, cols, 6, data);
    narrow.scale = w.scale.data();
    ASSERT_EQ(narrow.form, PackedForm::nibbles);
    ASSERT_NE(narrow.outliers, nullptr);
    EXPECT_LT(bytes_read(narrow), packed_bytes(PackedForm::six, rows, cols));
    pack_rows(w.view, w.q.data(), {0, w.view.row_tiles()}, const_cast<uint8_t*>(w.view.data));
    const std::vector<float> x = random_vector(cols, 9), want = product(w, x);
    std::vector<float> row(static_cast<size_t>(cols)), same(row);
    for (int64_t i = 0; i < rows; ++i) {
      unpack_row(w.view, i, row.data());
      unpack_row(narrow, i, same.data());
      EXPECT_EQ(row, same) << i;
    }
    w.view = narrow;
    EXPECT_EQ(product(w, x), want) << rows << 'x' << cols;
  }
}

// Many that do not fit: six bits, and none listed.
TEST(PackMatrix, KeepsSixBitsWhereMostAreUsed) {
  const Matrix w(48, 64, 6);
  std::vector<uint8_t> memory(packed_bytes(PackedForm::six, 48, 64) + 64);
  auto* data = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  const PackedRows packed = pack_matrix(w.q.data(), 48, 64, 6, data);
  EXPECT_EQ(packed.form, PackedForm::six);
  EXPECT_EQ(packed.outliers, nullptr);
}

TEST_P(PackedRowsTest, MultiplyToWithinTheRoundingOfTheVector) {
  for (const auto& [rows, cols] : kSizes) {
    for (int bits = 2; bits <= 8; ++bits) {
      const Matrix w(rows, cols, bits);
      const std::vector<float> x = random_vector(cols, 7), y = product(w, x);
      for (int64_t row = 0; row < rows; ++row) {
        double size = 0;
        const double want = w.truth(row, x, size);
        // Each element is off by at most 2^-23 of the largest, times a weight of at most 127.
        const double level = (1 << (bits - 1)) - 1;
        const double limit =
            static_cast<double>(w.scale[static_cast<size_t>(row)]) * level * static_cast<double>(cols) * size * 0x1p-23 +
            std::abs(want) * 1e-7;
        EXPECT_LE(std::abs(static_cast<double>(y[static_cast<size_t>(row)]) - want), limit)
            << rows << 'x' << cols << " bits " << bits;
      }
    }
  }
}

TEST_P(PackedRowsTest, AreExactForShortVectors) {  // elements with few bits survive whole
  const Matrix w(37, 300, 8);
  std::vector<float> x(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i * 37 % 255) - 127) * 0.125F;
  const std::vector<float> y = product(w, x);
  for (int64_t row = 0; row < 37; ++row) {
    double size = 0;
    EXPECT_EQ(y[static_cast<size_t>(row)], static_cast<float>(w.truth(row, x, size))) << row;
  }
}

TEST_P(PackedRowsTest, GiveTheBitsOfTheGenericKernels) {
  for (int bits : {4, 6, 8}) {
    const Matrix w(50, 200, bits);
    const std::vector<float> x = random_vector(200, 3), fast = product(w, x);
    use_kernels(*find_kernels("generic"));
    const std::vector<float> plain = product(w, x);
    use_kernels(*GetParam());
    EXPECT_EQ(fast, plain) << bits;
  }
}

TEST_P(PackedRowsTest, TakeExtremeVectors) {
  const Matrix w(20, 64, 6);
  for (const float size : {0.0F, 1e-38F, 1e-42F, 1e-20F, 3e37F, 127.5F / 128.0F, 1.0F, 0.9999999F}) {
    std::vector<float> x = random_vector(64, 11);
    float largest = 0;
    for (float v : x) largest = std::max(largest, std::abs(v));
    for (float& v : x) v = v / largest * size;
    const std::vector<float> y = product(w, x);
    for (int64_t row = 0; row < 20; ++row) {
      double most = 0;
      const double want = w.truth(row, x, most);
      const double limit = static_cast<double>(w.scale[static_cast<size_t>(row)]) * 31 * 64 * std::max(most, 1e-31) * 0x1p-22;
      EXPECT_LE(std::abs(static_cast<double>(y[static_cast<size_t>(row)]) - want), limit + 1e-44) << size;
    }
  }
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = random_vector(64, 11);
    x[5] = bad;
    for (const float v : product(w, x)) EXPECT_TRUE(std::isnan(v));
  }
}

TEST_P(PackedRowsTest, DivideByTiles) {
  const Matrix w(70, 48, 5);
  const std::vector<float> x = random_vector(48, 2), whole = product(w, x);
  DigitVector digits(48);
  digits.assign(x.data(), 48);
  std::vector<float> parts(72, -1.0F);
  for (int64_t tile = 0; tile < 5; ++tile) multiply(w.view, digits, {tile, tile + 1}, parts.data());
  EXPECT_EQ(parts[70], -1.0F);  // nothing beyond the rows is written
  parts.resize(70);
  EXPECT_EQ(parts, whole);
}

INSTANTIATE_TEST_SUITE_P(Isas, PackedRowsTest, testing::ValuesIn(available_kernels()), isa_test_name);

TEST(PackedRows, UnpackToTheIntegersTimesTheirScale) {
  for (int bits = 2; bits <= 8; ++bits) {
    const Matrix w(35, 41, bits);
    std::vector<float> row(41);
    for (int64_t i = 0; i < 35; ++i) {
      unpack_row(w.view, i, row.data());
      for (size_t j = 0; j < 41; ++j)
        EXPECT_EQ(row[j], w.scale[static_cast<size_t>(i)] * static_cast<float>(w.q[static_cast<size_t>(i) * 41 + j])) << bits;
    }
  }
}

}  // namespace
}  // namespace fairway::cpu
