// Products of a row of tiles with several vectors at once have the bits of one vector at a time, with every instruction set,
// for the largest numbers and the longest rows; so do those of machines that are neither x86-64 nor Arm.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/rng.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/cpu/isa/packed_kernels.h"
#include "textcode/exact_kernels.h"
#include "textcode/grouped_rows.h"
#include "textcode/head_caches.h"

#define FAIRWAY_PLAIN_WORDS
namespace fairway::textcode::plain {
namespace {

#include "textcode/exact.inl"
#include "textcode/exact_grouped.inl"

constexpr ExactKernels kExact{attend, dot, softcap, weigh};

}  // namespace
}  // namespace fairway::textcode::plain
#undef FAIRWAY_PLAIN_WORDS

namespace fairway::textcode {
namespace {

std::vector<const GroupedKernels*> grouped_here() {
  std::vector<const GroupedKernels*> out{&plain::kGroupedWords, &grouped_generic};
#if defined(__x86_64__)
  if (cpu::find_kernels("avx2") != nullptr) out.push_back(&grouped_avx2);
  if (cpu::find_kernels("avx512") != nullptr) out.push_back(&grouped_avx512);
  if (cpu::find_kernels("avx512") != nullptr && __builtin_cpu_supports("avx512vnni")) out.push_back(&grouped_vnni);
#endif
  return out;
}

struct Weights {
  // spread: of each weight below the largest that `bits` hold; 0: all are the least one
  Weights(int64_t rows, int64_t cols, int bits, int spread)
      : scale(static_cast<size_t>((rows + 15) / 16 * 16)), memory(cpu::packed_bytes(cpu::packed_form(bits), rows, cols) + 64) {
    Rng rng(static_cast<uint64_t>(rows * cols + bits));
    const int level = (1 << (bits - 1)) - 1;
    std::vector<int8_t> q;
    for (int64_t i = 0; i < rows * cols; ++i)
      q.push_back(static_cast<int8_t>(spread == 0 ? -level - (bits == 8 ? 1 : 0)
                                      : rng.below(300) == 0
                                          ? static_cast<int>(rng.below(static_cast<uint64_t>(2 * level))) - level
                                          : static_cast<int>(rng.below(static_cast<uint64_t>(spread))) - spread / 2));
    for (float& s : scale) s = static_cast<float>(rng.below(1000) + 1) * 0x1p-14F;
    view = cpu::pack_matrix(q.data(), rows, cols, bits,
                            memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64);
    view.scale = scale.data();
  }
  std::vector<float> scale;
  std::vector<uint8_t> memory;
  cpu::PackedRows view;
};

std::vector<float> one_by_one(const Weights& w, const std::vector<std::vector<float>>& x) {
  std::vector<float> y;
  for (const std::vector<float>& row : x) {
    cpu::DigitVector digits(w.view.cols);
    digits.assign(row.data(), w.view.cols);
    std::vector<float> own(static_cast<size_t>(w.view.rows));
    cpu::multiply(w.view, digits, {0, w.view.row_tiles()}, own.data());
    y.insert(y.end(), own.begin(), own.end());
  }
  return y;
}

std::vector<float> in_a_group(const Weights& w, const std::vector<std::vector<float>>& x, const GroupedKernels& kernels) {
  const int64_t cols = w.view.col_tiles() * cpu::kTileCols, rows = static_cast<int64_t>(x.size());
  std::vector<int8_t> digits(static_cast<size_t>(cols / 4 * kMostQuadBytes), 77);
  std::vector<int32_t> sums;
  std::vector<double> units;
  std::vector<float> y(x.size() * static_cast<size_t>(w.view.rows));
  std::vector<float*> to;
  for (int64_t m = 0; m < rows; ++m) {
    cpu::DigitVector own(w.view.cols);
    own.assign(x[static_cast<size_t>(m)].data(), w.view.cols);
    const int8_t* from[kPlaces] = {own.digits(0), own.digits(1), own.digits(2)};
    kernels.arrange(from, cols, static_cast<int>(m), digits.data());
    sums.insert(sums.end(), own.sums(), own.sums() + kPlaces);
    units.push_back(own.unit());
    to.push_back(y.data() + m * w.view.rows);
  }
  std::vector<uint8_t> room(static_cast<size_t>(cols * cpu::kTileRows * 2 + 64));
  uint8_t* unpacked = room.data() + (64 - reinterpret_cast<uintptr_t>(room.data()) % 64) % 64;
  for (int64_t tile = 0; tile < w.view.row_tiles(); ++tile) {
    kernels.unpack(w.view, tile, unpacked);
    kernels.multiply(
        w.view, tile, unpacked,
        {.rows = static_cast<int>(rows), .digits = digits.data(), .sums = sums.data(), .units = units.data(), .y = to.data()});
  }
  return y;
}

TEST(GroupedRows, HaveTheBitsOfOneVectorAtATime) {
  Rng rng(11);
  for (const int bits : {3, 6, 8})
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 1}, {17, 15}, {40, 33}, {33, 512}, {5, 1792}}) {
      const Weights w(rows, cols, bits, bits == 3 ? 6 : 15);
      for (const size_t count : {1U, 2U, 3U, 5U, 8U}) {
        std::vector<std::vector<float>> x(count, std::vector<float>(static_cast<size_t>(cols)));
        for (auto& row : x)
          for (float& value : row) value = static_cast<float>(rng.normal());
        if (count == 5) x[2][0] = NAN;
        const std::vector<float> want = one_by_one(w, x);
        for (const GroupedKernels* kernels : grouped_here()) {
          const std::vector<float> have = in_a_group(w, x, *kernels);
          for (size_t i = 0; i < want.size(); ++i)
            ASSERT_TRUE(have[i] == want[i] || (std::isnan(have[i]) && std::isnan(want[i]))) << bits << " " << cols << " " << i;
        }
      }
    }
}

TEST(GroupedRows, HoldTheLargestSumsOfTheLongestRows) {
  for (const GroupedKernels* kernels : grouped_here()) {
    const int64_t cols = std::min<int64_t>(kernels->most_cols, 8191);
    const Weights w(16, cols, 8, 0);
    for (const float value : {0x1.fdfdfcp6F, -0x1.fdfdfcp6F, 0x1.001p6F}) {
      const std::vector<std::vector<float>> x(2, std::vector<float>(static_cast<size_t>(cols), value));
      EXPECT_EQ(in_a_group(w, x, *kernels), one_by_one(w, x)) << value;
    }
  }
}

// attend() in plain C++ against the tables, which all have sums of their own.
TEST(GroupedRows, PlainWordsAttendAlike) {
  constexpr int64_t kSize = 24, kLength = 70, kGroup = 3;
  const auto attended = [&](const ExactKernels& kernels) {
    const HeadCaches caches({.heads = 1, .size = kSize, .length = kLength});
    HeadScratch scratch;
    scratch.fit(1, kGroup, caches.shape());
    Rng rng(8);
    std::vector<float> y;
    for (int64_t t = 0; t < kLength; ++t) {
      std::vector<float> q(kGroup * kSize), k(kSize), v(kSize), own(kGroup * kSize);
      for (auto* x : {&q, &k, &v})
        for (float& value : *x) value = static_cast<float>(rng.normal());
      AttendArgs a{.q = q.data(), .k = k.data(), .v = v.data(), .y = own.data(), .group = kGroup, .position = t, .scale = 0.2F};
      caches.place(0, a);
      scratch.place(0, a);
      kernels.attend(a);
      y.insert(y.end(), own.begin(), own.end());
    }
    return y;
  };
  EXPECT_EQ(attended(plain::kExact), attended(exact_generic));
}

}  // namespace
}  // namespace fairway::textcode
