// y = P·V, P = exp(scale·qkᵀ − lse), with the softmax's sums made as keys come. Scores are in powers of two.
#include "ops/cuda/attention_warps.cuh"
#include "ops/cuda/small_tensor.h"

namespace fairway::cuda {
namespace {

using namespace warp;

constexpr float kLn2 = 0.6931471805599453f;
constexpr float kLowest = -1e30f;  // below every score; −∞ would make NaN of differences

// How heads leave: through HeadOutput, before they are rounded.
struct HeadExit {
  HeadSink z;
  float* lse;
  const bf16* v;       // null: nothing is taken away
  const float* logit;  // null: no gate
  float* dot;          // null: heads leave as they are
  static constexpr float kNormFloor = 1e-12f;

  // A lane's half of row `row`: sums[n][2b], sums[n][2b + 1].
  __device__ void shape(const WarpHeads& a, const QueryBlock& block, int row, int b, Sum (&sums)[kHead / 8]) const {
    const int64_t item = int64_t{row} * a.heads + block.head;
    float own[kHead / 8][2], squares = 0, along = 0;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n) {
      Source<bf16>{v}.load(row * a.v_pitch + block.kv_head * kHead + 8 * n + lane_column(), own[n]);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        squares += own[n][i] * own[n][i];
        along += own[n][i] * sums[n][2 * b + i];
      }
    }
    const float inverse = 1.0f / fmaxf(sqrtf(group_sum<4>(squares)), kNormFloor), c = group_sum<4>(along) * inverse;
    const float open = logit != nullptr ? sigmoid(static_cast<float>(HeadOutput::kGateScale) * logit[item]) : 1.0f;
    if (lane_id() % 4 == 0) dot[item] = c;
#pragma unroll
    for (int n = 0; n < kHead / 8; ++n)
#pragma unroll
      for (int i = 0; i < 2; ++i) sums[n][2 * b + i] = open * (sums[n][2 * b + i] - c * inverse * own[n][i]);
  }
};

// What a query's softmax has seen so far: the largest score and the lane's share of Σ 2^(score − largest).
struct Softmax {
  float highest[kQueryTiles][2], total[kQueryTiles][2];

  __device__ Softmax() {
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m)
#pragma unroll
      for (int b = 0; b < 2; ++b) highest[m][b] = kLowest, total[m][b] = 0;
  }

  // Scores of keys key …, which c makes powers of two, become weights; y of the keys before is made smaller by what they lose.
  __device__ void weigh(Sum (&scores)[kQueryTiles][kTurn / 8], Sum (&y)[kQueryTiles][kHead / 8],
                        const Queries<kQueryTiles>& own, int key, float c) {
    const bool cut = own.cut(key, kTurn);
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m)
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        float top = kLowest;
#pragma unroll
        for (int n = 0; n < kTurn / 8; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& x = scores[m][n][2 * b + i];
            if (cut && !own.sees(m, b, key + 8 * n + lane_column() + i)) x = -INFINITY;
            top = fmaxf(top, x);
          }
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(highest[m][b], c * fmaxf(top, __shfl_xor_sync(~0u, top, 2)));
        const float shrink = exp2_fast(highest[m][b] - top);
        highest[m][b] = top;
        total[m][b] *= shrink;
#pragma unroll
        for (int n = 0; n < kHead / 8; ++n) {
          y[m][n][2 * b] *= shrink;
          y[m][n][2 * b + 1] *= shrink;
        }
#pragma unroll
        for (int n = 0; n < kTurn / 8; ++n)
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& x = scores[m][n][2 * b + i];
            x = exp2_fast(fmaf(x, c, -top));
            total[m][b] += x;
          }
      }
  }

  __device__ void leave(const WarpHeads& a, const QueryBlock& block, int first_row, const HeadExit& exit,
                        Sum (&sums)[kQueryTiles][kHead / 8]) const {
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        const float all = group_sum<4>(total[m][b]), inverse = 1.0f / all;
        const int row = first_row + 16 * m + lane_row() + 8 * b;
#pragma unroll
        for (int n = 0; n < kHead / 8; ++n) sums[m][n][2 * b] *= inverse, sums[m][n][2 * b + 1] *= inverse;
        if (row >= a.rows) continue;  // the four lanes of a row go the same way
        if (lane_id() % 4 == 0) exit.lse[a.statistic(row, block.head)] = highest[m][b] * kLn2 + logf(all);
        if (exit.dot != nullptr) exit.shape(a, block, row, b, sums[m]);
      }
      exit.z.store(first_row + 16 * m + lane_row(), a.rows, block.head * kHead, sums[m], 1);
    }
  }
};

__global__ void __launch_bounds__(kQueryThreads, 2) warp_heads_forward(WarpHeads a, HeadExit exit) {
  __shared__ Tile<kOwned> queries;
  __shared__ KeyTiles keys;
  const QueryBlock block(a);
  const Queries<kQueryTiles> own(a, block.row + warp_id() * 16 * kQueryTiles);
  copy_rows<kOwned, kQueryThreads>(queries, a.q + block.head * kHead, a.q_pitch, block.row, a.rows);
  copy_keys(keys, 0, a, block.kv_head, block.first_key);
  Fragment q[kQueryTiles][kSteps];
  Sum sums[kQueryTiles][kHead / 8] = {};
  Softmax soft;
  for (int turn = 0; turn < block.turns; ++turn) {
    wait_copies<0>();
    __syncthreads();
    if (turn == 0) load_owned(q, queries, warp_id() * 16 * kQueryTiles);
    const int key = block.first_key + turn * kTurn;
    if (turn + 1 < block.turns) copy_keys(keys, turn + 1, a, block.kv_head, key + kTurn);
    if (!own.some(key, kTurn)) continue;
    Sum scores[kQueryTiles][kTurn / 8];
    multiply_columns(scores, q, keys.k[turn % 2], 0);
    soft.weigh(scores, sums, own, key, a.scale * kLog2E);
    Fragment weights[kQueryTiles][kTurn / 16];
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m)
#pragma unroll
      for (int k = 0; k < kTurn / 16; ++k) round_sums(weights[m][k], scores[m][2 * k], scores[m][2 * k + 1]);
    add_terms(sums, weights, keys.v[turn % 2], 0);
  }
  soft.leave(a, block, own.row, exit, sums);
}

}  // namespace

// A row's sums go over tiles of keys that begin every 64 rows of the batch: where rows must be alike, sequences begin there.
bool suits_attention_warps(const Context& context, const Attention& op, const Attention::In& in) {
  return context.path() == KernelPath::generic && in.q.spec.dtype == DType::bf16 && in.q.cols() == op.heads * kHead &&
         in.q.rows() > 0 && in.q.rows() < (int64_t{1} << 30) && op.heads < (int64_t{1} << 16) && op.scale > 0 &&
         aligned_rows(in.q) && aligned_rows(in.k) && aligned_rows(in.v) &&
         (!context.rows_alike() || op.row_length % kTurn == 0);
}

void attention_warps_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f) {
  const HeadExit exit{head_sink(f.out.z), pointer<float>(f.saved.lse), op.exclusive ? pointer<bf16>(f.in.v) : nullptr,
                      pointer<float>(f.in.logit), op.shapes_output(f.in) ? pointer<float>(f.saved.dot) : nullptr};
  warp_heads_forward<<<owner_blocks(f.in.q.rows(), op.heads), kQueryThreads, 0, scratch.stream()>>>(warp_heads(op, f.in), exit);
  check_launch("attention of 64-wide heads");
}

}  // namespace fairway::cuda
