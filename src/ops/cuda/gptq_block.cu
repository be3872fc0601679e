#include "base/trellis.h"
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

struct Panel {
  GptqBlock op;
  int64_t rows, columns, width;
  float* work;
  const float *factor, *scale;
  float* error;
  double* loss;
  const float* outputs;  // (side, side)
  float* aims;           // (rows), of the column at work
  int64_t side;
};

// By a warp: row `row` gets q in column j; its error goes to the block's later columns. Returns e².
__device__ double take_level(const Panel& p, int64_t row, int64_t j, double q) {
  float* w = p.work + row * p.columns;
  const float* u = p.factor + j * p.columns;
  const double e = (static_cast<double>(w[j]) - static_cast<double>(p.scale[row]) * q) / static_cast<double>(u[j]);
  __syncwarp();
  if (lane_id() == 0) {
    w[j] = static_cast<float>(q);
    p.error[row * p.width + j - p.op.begin] = static_cast<float>(e);
  }
  for (int64_t l = j + 1 + lane_id(); l < p.op.end; l += 32)
    w[l] = static_cast<float>(static_cast<double>(w[l]) - e * static_cast<double>(u[l]));
  __syncwarp();
  return e * e;
}

// A warp takes a row: its block of columns one after another.
__global__ void round_block(Panel p) {
  const int64_t row = warp_index();
  if (row >= p.rows) return;
  const double step = static_cast<double>(p.scale[row]), levels = p.op.levels;
  double total = 0;
  for (int64_t j = p.op.begin; j < p.op.end; ++j) {
    const double scaled = step > 0 ? static_cast<double>(p.work[row * p.columns + j]) / step : 0.0;
    total += take_level(p, row, j, fmin(fmax(rint(scaled), -levels), levels));
  }
  if (lane_id() == 0) p.loss[row] += total;
}

// As in ops/cpu/isa/quant.inl: the nearest of the integers that are `residue` modulo 4.
__device__ int nearest_level(float x, int residue, int levels) {
  const float most = static_cast<float>(levels), inside = fminf(fmaxf(x, -most), most);
  const int near = residue + 4 * static_cast<int>(rintf((inside - static_cast<float>(residue)) * 0.25f));
  return near + (near > levels ? -4 : near < -levels ? 4 : 0);
}

// A block of threads takes the rows from one start of the trellis to the next: of each column a thread a row finds what levels
// cost, a warp with a lane a state finds the path, and a warp a row spreads the errors.
constexpr int kChainThreads = 1024;
__global__ void __launch_bounds__(kChainThreads) trellis_block(Panel p) {
  static_assert(kTrellisStates == 32 && kTrellisRows <= kChainThreads);
  __shared__ float cost[kTrellisRows][4];  // by residue
  __shared__ int8_t level[kTrellisRows][4];
  __shared__ unsigned taken[kTrellisRows];  // a bit a state
  __shared__ int8_t path[kTrellisRows];
  __shared__ double losses[kTrellisRows];
  const int64_t first = blockIdx.x * kTrellisRows;
  const int rows = static_cast<int>(p.rows - first < kTrellisRows ? p.rows - first : kTrellisRows);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, levels = p.op.levels;
  if (thread < rows) losses[thread] = 0;
  for (int64_t j = p.op.begin; j < p.op.end; ++j) {
    __syncthreads();
    if (thread < rows) {
      const double step = static_cast<double>(p.scale[first + thread]);
      const float x =
          step > 0 ? static_cast<float>(static_cast<double>(p.work[(first + thread) * p.columns + j]) / step) : 0.0f;
      for (int residue = 0; residue < 4; ++residue) {
        const int near = nearest_level(x, residue, levels);
        const float apart = x - static_cast<float>(near);
        cost[thread][residue] = apart * apart;
        level[thread][residue] = static_cast<int8_t>(near);
      }
    }
    __syncthreads();
    if (warp == 0) {
      const int state = thread, odd = state / (kTrellisStates / 2);
      const int before = trellis_state_before(state, false), before_second = trellis_state_before(state, true);
      float sum = state == 0 ? 0.0f : 1e30f;
#pragma unroll 8
      for (int i = 0; i < rows; ++i) {
        const float without = __shfl_sync(~0U, sum, before) + cost[i][odd];
        const float with = __shfl_sync(~0U, sum, before_second) + cost[i][odd + 2];
        const unsigned flags = __ballot_sync(~0U, with < without);
        if (state == 0) taken[i] = flags;
        sum = fminf(with, without);
      }
      int best = state;  // the lowest of equal ones
      for (int apart = 16; apart > 0; apart /= 2) {
        const float other = __shfl_xor_sync(~0U, sum, apart);
        const int whose = __shfl_xor_sync(~0U, best, apart);
        if (other < sum || (other == sum && whose < best)) sum = other, best = whose;
      }
      __syncwarp();
      if (state == 0) {
#pragma unroll 8  // bits are read ahead of the path that chooses among them
        for (int i = rows; i-- > 0;) {
          const bool second = (taken[i] >> best & 1) != 0;
          path[i] = level[i][best / (kTrellisStates / 2) + (second ? 2 : 0)];
          best = trellis_state_before(best, second);
        }
      }
    }
    __syncthreads();
    for (int i = warp; i < rows; i += kChainThreads / 32) {
      const double squared = take_level(p, first + i, j, path[i]);
      if (lane_id() == 0) losses[i] += squared;
    }
  }
  __syncthreads();
  if (thread < rows) p.loss[first + thread] += losses[thread];
}

// What the rows of one weight aim at, from one start of the trellis to the next: by each state, before a row and after it.
struct Survivors {
  float aims[2][kTrellisStates][kTrellisRows + 1];  // the odd pitch lets a warp read all states of a row at once
  int8_t level[kTrellisRows][kTrellisStates];
  uint8_t before[kTrellisRows][kTrellisStates];
  float error[kTrellisStates];  // d of the row at work
  int8_t path[kTrellisRows];
};

// By a whole block. `first` is a row of the weight whose V and aims are given; a warp with a lane a state chooses, then a warp
// a state brings the aims below up to date.
__device__ void find_survivor(const float* aims, const float* steps, const float* outputs, int64_t side, int64_t first,
                              int levels, Survivors& s) {
  const int rows = static_cast<int>(side - first < kTrellisRows ? side - first : kTrellisRows);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  for (int l = lane; l < rows; l += 32) s.aims[0][warp][l] = aims[first + l];
  float sum = lane == 0 ? 0.0f : 1e30f;
  __syncthreads();
  for (int i = 0; i < rows; ++i) {
    const float* v = outputs + (first + i) * (side + 1);
    const auto& now = s.aims[i % 2];
    if (warp == 0) {
      const float step = steps[first + i], aim = now[lane][i], x = step > 0 ? aim / step : 0.0f;
      const int near = nearest_level(x, lane & 1, levels), near_second = nearest_level(x, (lane & 1) + 2, levels);
      const float d = (aim - step * static_cast<float>(near)) / v[0];
      const float d_second = (aim - step * static_cast<float>(near_second)) / v[0];
      const int from = trellis_state_before(lane, false), from_second = trellis_state_before(lane, true);
      const float without = __shfl_sync(~0U, sum + d * d, from);
      const float with = __shfl_sync(~0U, sum + d_second * d_second, from_second);
      const int q = __shfl_sync(~0U, near, from), q_second = __shfl_sync(~0U, near_second, from_second);
      const float e = __shfl_sync(~0U, d, from), e_second = __shfl_sync(~0U, d_second, from_second);
      const bool second = with < without;
      sum = second ? with : without;
      s.level[i][lane] = static_cast<int8_t>(second ? q_second : q);
      s.before[i][lane] = static_cast<uint8_t>(second ? from_second : from);
      s.error[lane] = second ? e_second : e;
    }
    __syncthreads();
    const float* old = now[s.before[i][warp]];
    for (int l = i + 1 + lane; l < rows; l += 32) s.aims[1 - i % 2][warp][l] = old[l] - s.error[warp] * v[l - i];
    __syncthreads();
  }
  if (warp == 0) {
    int best = lane;  // the lowest of equal ones
    for (int apart = 16; apart > 0; apart /= 2) {
      const float other = __shfl_xor_sync(~0U, sum, apart);
      const int whose = __shfl_xor_sync(~0U, best, apart);
      if (other < sum || (other == sum && whose < best)) sum = other, best = whose;
    }
    if (lane == 0)
      for (int i = rows; i-- > 0; best = s.before[i][best]) s.path[i] = s.level[i][best];
  }
  __syncthreads();
}

// A block of threads takes a weight, column by column and down each row by row, since every row waits for those above it.
__global__ void __launch_bounds__(kChainThreads) two_sided_block(Panel p) {
  static_assert(kTrellisStates == 32 && kChainThreads == 32 * kTrellisStates);
  __shared__ Survivors survivors;
  const int64_t first = blockIdx.x * p.side;
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32, levels = p.op.levels;
  float* aims = p.aims + first;
  const float* steps = p.scale + first;
  for (int64_t j = p.op.begin; j < p.op.end; ++j) {
    for (int64_t i = thread; i < p.side; i += kChainThreads) aims[i] = p.work[(first + i) * p.columns + j];
    __syncthreads();
    for (int64_t i = 0; i < p.side; ++i) {
      if (p.op.trellis && i % kTrellisRows == 0) find_survivor(aims, steps, p.outputs, p.side, i, levels, survivors);
      const float step = steps[i], most = static_cast<float>(levels), *v = p.outputs + i * (p.side + 1);
      const float q = p.op.trellis ? static_cast<float>(survivors.path[i % kTrellisRows])
                      : step > 0   ? fminf(fmaxf(rintf(aims[i] / step), -most), most)
                                   : 0.0f;
      const float apart = aims[i] - step * q, d = apart / v[0];
      for (int64_t l = i + 1 + thread; l < p.side; l += kChainThreads) aims[l] -= d * v[l - i];
      if (warp == 0) {
        take_level(p, first + i, j, static_cast<double>(q));
        const double counted = static_cast<double>(apart) / static_cast<double>(p.factor[j * (p.columns + 1)]);
        if (thread == 0) p.loss[first + i] += counted * counted;
      }
      __syncthreads();
    }
  }
}

// What the errors do to the columns after the block; a warp a row.
__global__ void spread_errors(Panel p) {
  const int64_t row = warp_index();
  if (row >= p.rows) return;
  float* w = p.work + row * p.columns;
  const float* errors = p.error + row * p.width;
  for (int64_t l = p.op.end + lane_id(); l < p.columns; l += 32) {
    double change = 0;
    for (int64_t k = p.op.begin; k < p.op.end; ++k)
      change += static_cast<double>(errors[k - p.op.begin]) * static_cast<double>(p.factor[k * p.columns + l]);
    w[l] = static_cast<float>(static_cast<double>(w[l]) - change);
  }
}

}  // namespace

void forward(const GptqBlock& op, const Forward<GptqBlock>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.work.rows();
  if (rows == 0) return;
  const Panel panel{op,
                    rows,
                    f.in.work.cols(),
                    f.in.error.cols(),
                    pointer<float>(f.in.work),
                    pointer<float>(f.in.factor),
                    pointer<float>(f.in.scale),
                    pointer<float>(f.in.error),
                    pointer<double>(f.in.loss),
                    f.in.outputs ? pointer<float>(f.in.outputs) : nullptr,
                    f.in.outputs ? scratch.take<float>(rows) : nullptr,
                    f.in.outputs ? f.in.outputs.dim(0) : 0};
  const auto by_rows = static_cast<unsigned>((rows + kWarps - 1) / kWarps);
  if (f.in.outputs)
    two_sided_block<<<static_cast<unsigned>(rows / panel.side), kChainThreads, 0, scratch.stream()>>>(panel);
  else if (op.trellis)
    trellis_block<<<static_cast<unsigned>((rows + kTrellisRows - 1) / kTrellisRows), kChainThreads, 0, scratch.stream()>>>(
        panel);
  else
    round_block<<<by_rows, kThreads, 0, scratch.stream()>>>(panel);
  check_launch("gptq_block");
  spread_errors<<<by_rows, kThreads, 0, scratch.stream()>>>(panel);
  check_launch("gptq_block");
}

}  // namespace fairway::cuda
