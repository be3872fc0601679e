#include "model/initialize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/bf16.h"
#include "base/error.h"
#include "base/rng.h"

namespace fairway {
namespace {

// The published weights pass once through bf16 before they become f32.
float rounded(double value) { return through_bf16(static_cast<float>(value)); }

uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ULL;
  return hash;
}

// Built for wider vectors too. Eight lanes in every build and no fused multiply-add: the same bits on every machine.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FAIRWAY_WIDER_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FAIRWAY_WIDER_CLONES
#endif

typedef double EightDoubles __attribute__((vector_size(64), aligned(8), may_alias));
constexpr int kLanes = 8, kRows = 4, kDone = 2, kWide = 2;  // tiles of dots: kRows x kDone; of updates: kRows x kWide vectors

// along[r][d] = row r . done row d; rows of both are n long, those of `along` ld.
FAIRWAY_WIDER_CLONES void dot_tile(const double* rows, const double* done, int64_t n, double* along, int64_t ld) {
  EightDoubles sums[kRows][kDone] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int d = 0; d < kDone; ++d) {
        sums[r][d] +=
            *reinterpret_cast<const EightDoubles*>(rows + r * n + k) * *reinterpret_cast<const EightDoubles*>(done + d * n + k);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int d = 0; d < kDone; ++d) {
      double sum = 0;
      for (int lane = 0; lane < kLanes; ++lane) sum += sums[r][d][lane];
      for (int64_t rest = k; rest < n; ++rest) sum += rows[r * n + rest] * done[d * n + rest];
      along[r * ld + d] = sum;
    }
  }
}

// Takes from kRows rows their parts along `count` finished ones.
FAIRWAY_WIDER_CLONES void subtract_parts(double* rows, const double* done, int64_t n, const double* along, int64_t count) {
  int64_t k = 0;
  for (; k + kWide * kLanes <= n; k += kWide * kLanes) {
    EightDoubles parts[kRows][kWide] = {};
    for (int64_t d = 0; d < count; ++d) {
      const double* from = done + d * n + k;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (int w = 0; w < kWide; ++w) {
          parts[r][w] += along[r * count + d] * *reinterpret_cast<const EightDoubles*>(from + w * kLanes);
        }
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int w = 0; w < kWide; ++w) *reinterpret_cast<EightDoubles*>(rows + r * n + k + w * kLanes) -= parts[r][w];
    }
  }
  for (; k < n; ++k) {
    for (int r = 0; r < kRows; ++r) {
      double part = 0;
      for (int64_t d = 0; d < count; ++d) part += along[r * count + d] * done[d * n + k];
      rows[r * n + k] -= part;
    }
  }
}

// Takes from `row` its part along the unit vector `done`.
FAIRWAY_WIDER_CLONES void remove_component(double* row, const double* done, int64_t n) {
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lanes[j] += row[i + j] * done[i + j];
  }
  for (; i < n; ++i) lanes[0] += row[i] * done[i];
  double along = 0;
  for (double lane : lanes) along += lane;
  for (int64_t k = 0; k < n; ++k) row[k] -= along * done[k];
}

// Gram–Schmidt in double, by blocks of rows of length n: classical against the finished blocks, modified inside. A Gaussian
// matrix is far from singular: one pass leaves the rows orthogonal to far below the bf16 grid they are rounded to.
void orthonormalize(std::vector<double>& v, int64_t count, int64_t n) {
  constexpr int64_t kBlock = 32;  // finished rows pass by once for all of these, which stay in the second cache
  static_assert(kBlock % kRows == 0 && kBlock % kDone == 0);
  std::vector<double> along(static_cast<size_t>(kRows * count));
  const auto row = [&](int64_t i) { return &v[static_cast<size_t>(i * n)]; };
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, count), whole = begin + (end - begin) / kRows * kRows;
    for (int64_t i = begin; i < whole && begin > 0; i += kRows) {
      for (int64_t done = 0; done < begin; done += kDone)
        dot_tile(row(i), row(done), n, &along[static_cast<size_t>(done)], begin);
      subtract_parts(row(i), row(0), n, along.data(), begin);
    }
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t done = i < whole ? begin : 0; done < i; ++done) remove_component(row(i), row(done), n);
      double squares = 0;
      for (int64_t k = 0; k < n; ++k) squares += row(i)[k] * row(i)[k];
      const double inverse = 1 / std::sqrt(squares);
      for (int64_t k = 0; k < n; ++k) row(i)[k] *= inverse;
    }
  }
}

void fill_normal(const ParamBank& bank, double std_deviation, uint64_t seed) {
  Rng rng(seed, stream_of(bank.info.name));
  float* data = bank.value.as<float>();
  for (int64_t i = 0; i < bank.value.numel(); ++i) data[i] = rounded(std_deviation * rng.normal());
}

void fill_constant(const Tensor& tensor, double value) {
  std::fill_n(tensor.as<float>(), tensor.numel(), static_cast<float>(value));
}

// All but matrices that start orthogonal; `values`: the bank or a slice of it.
void fill_simple(const ParamBank& bank, const Tensor& values, Initial initial, const ModelRecipe& model, uint64_t seed) {
  const ParamRow& row = bank.info.row();
  switch (initial) {
    case Initial::normal: return fill_normal(bank, row.initial_number(model), seed);
    case Initial::constant: return fill_constant(values, row.initial_number(model));
    case Initial::one: return fill_constant(values, 1);
    case Initial::keep_stream:
      fill_constant(values, 0);
      for (int64_t layer = 0; layer < values.dim(0); ++layer) fill_constant(values.slice(layer).slice(0), 1);
      return;
    case Initial::zero:
    case Initial::orthogonal: break;
  }
  fill_constant(values, 0);
}

}  // namespace

void fill_orthogonal(float* matrix, int64_t rows, int64_t cols, uint64_t seed, uint64_t stream) {
  const int64_t count = std::min(rows, cols), length = std::max(rows, cols);
  std::vector<double> vectors(static_cast<size_t>(count * length));
  Rng rng(seed, stream);
  for (double& value : vectors) value = rng.normal();
  orthonormalize(vectors, count, length);
  constexpr int64_t kStrip = 16;  // rows of a tall matrix at a time: its vectors are columns and far apart
  for (int64_t strip = 0; strip < rows; strip += kStrip) {
    const int64_t end = std::min(strip + kStrip, rows);
    if (rows <= cols) {
      for (int64_t i = strip * cols; i < end * cols; ++i) matrix[i] = rounded(vectors[static_cast<size_t>(i)]);
      continue;
    }
    for (int64_t c = 0; c < cols; ++c) {
      for (int64_t r = strip; r < end; ++r) matrix[r * cols + c] = rounded(vectors[static_cast<size_t>(c * length + r)]);
    }
  }
}

void initialize(ParamStore& params, const ModelRecipe& model, uint64_t seed, ThreadPool& pool) {
  struct Matrix {
    float* data;
    int64_t rows, cols;
    uint64_t stream;
  };
  std::vector<Matrix> matrices;
  for (const ParamBank& bank : params.banks()) {
    const ParamRow& row = bank.info.row();
    const bool cut = row.block == BlockPart::matrices;
    for (int64_t i = 0; i < (cut ? bank.value.dim(0) : 1); ++i) {
      const Tensor values = cut ? bank.value.slice(i) : bank.value;
      const Initial initial = row.kind_of(i, model.layers).initial;
      if (initial == Initial::orthogonal) {
        const uint64_t stream = stream_of(row.name) + static_cast<uint64_t>(i);
        matrices.push_back({values.as<float>(), values.dim(0), values.cols(), stream});
      } else {
        fill_simple(bank, values, initial, model, seed);
      }
    }
  }
  pool.parallel_for(static_cast<int64_t>(matrices.size()), [&](int64_t i) {
    const Matrix& m = matrices[static_cast<size_t>(i)];
    fill_orthogonal(m.data, m.rows, m.cols, seed, m.stream);
  });
}

}  // namespace fairway
