// Causal attention over heads of 64 in bf16 on Hopper's tensor cores: y = softmax(scale·qkᵀ)·v with running maxima. A warpgroup
// owns 64 queries; keys and values stream through shared memory 128 at a time, and the weights of the next are computed while
// the values of one are added. Keys before the first document of a block's queries are never visited. HeadOutput is applied to
// the sums: the queries' own values are among the last that streamed by.
#include "ops/cuda/attention_tiles.h"
#include "ops/cuda/head_rows.cuh"
#include "ops/cuda/sm90/document_tiles.cuh"

namespace fairway::cuda {
namespace {

using namespace sm90;

struct Shared {
  static constexpr int kStages = 4, kPlaces = 2;
  Tile q[kPlaces][2], k[kStages][2], v[kStages][2];
  Pipe<kStages> pipe;
  Agenda<kPlaces> agenda;
};
struct Maps {
  CUtensorMap q, k, v;
};

// Of a thread's two rows: the largest score and the sum of weights so far, this thread's columns only.
struct Rows {
  float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
};

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// Where the documents begin of a thread's two rows and of the last of the warpgroup's, the latest of all. A tile of documents
// may go on behind its last row, where nobody looks.
template <bool Segmented>
struct Starts {
  int first[2] = {0, 0}, latest = 0;
  __device__ Starts(const HeadShape& s, int query, int row, int end) {
    if constexpr (Segmented) {
      first[0] = s.start[min(row, s.length - 1)], first[1] = s.start[min(row + 8, s.length - 1)];
      latest = s.start[min(query + kTile, end) - 1];
    }
  }
};

// Scores of keys that a query does not see become −∞.
template <bool Segmented>
__device__ void hide(WideAccumulator& scores, const Starts<Segmented>& starts, int query, int row, int key) {
  if (key + kPair <= query && !(Segmented && starts.latest > key)) return;
  const int lane = lane_id();
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int of_key = key + 8 * (i / 4) + 2 * (lane % 4) + i % 2, b = i / 2 % 2;
    if (of_key > row + 8 * b || (Segmented && of_key < starts.first[b])) scores[i] = -INFINITY;
  }
}

// The weights of 128 keys; y's rows shrink to the new maxima by the factors in `shrink`.
__device__ inline void weigh(Fragment (&to)[2], const WideAccumulator& scores, Rows& rows, float c, float (&shrink)[2]) {
  float from[2], total[4] = {0, 0, 0, 0};
#pragma unroll
  for (int b = 0; b < 2; ++b) {
    float top = rows.top[b];
#pragma unroll
    for (int j = 0; j < 16; ++j) top = fmaxf(top, fmaxf(scores[4 * j + 2 * b], scores[4 * j + 2 * b + 1]));
    top = quad_max(top);
    from[b] = top == -INFINITY ? 0.0f : top * c;
    shrink[b] = exp2_fast(fmaf(rows.top[b], c, -from[b]));
    rows.top[b] = top;
  }
#pragma unroll
  for (int j = 0; j < 16; ++j) {
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i] = exp2_fast(fmaf(scores[4 * j + i], c, -from[i / 2]));
      total[i] += p[i];
    }
    round_four(to[j / 8], j % 8, p);
  }
#pragma unroll
  for (int b = 0; b < 2; ++b) rows.total[b] = rows.total[b] * shrink[b] + (total[2 * b] + total[2 * b + 1]);
}

// Queries of one head and the keys that they see, in pairs of tiles. The last queries of a sequence come first: they see the
// most keys.
struct Task {
  int base, head, first_query, end, pairs;  // `end` of the queries
  template <bool Segmented>
  __device__ static Task of(const HeadShape& s, const DocumentTiles& documents, int all_rows, int item) {
    if constexpr (Segmented) {
      const SegmentTile tile = documents.next(item / s.heads);
      return {0, item % s.heads, tile.first, tile.end, tile.back + 1};
    } else {
      const int columns = all_rows / s.length * s.heads, pairs = s.length / kPair - item / columns;
      return {item % columns / s.heads * s.length, item % s.heads, (pairs - 1) * kPair, pairs * kPair, pairs};
    }
  }
  __device__ int first_key() const { return first_query - (pairs - 1) * kPair; }
};

template <bool Segmented>
__device__ void copy_tiles(Shared& shared, const Maps& maps, const HeadShape& s, const DocumentTiles& documents, int all_rows,
                           int items, int* counter) {
  for (int n = 0, turn = 0;; ++n) {
    const int item = atomicAdd(counter, 1);
    if (item >= items) return shared.agenda.announce_end(n);
    const Task t = Task::of<Segmented>(s, documents, all_rows, item);
    const int kv_head = t.head / (s.heads / s.kv_heads);
    Barrier& landed = shared.agenda.announce(n, item, 2 * kTileBytes);
    load_pair(shared.q[n % Shared::kPlaces], maps.q, t.head * kTile, t.base + t.first_query, landed);
    for (int i = 0; i < t.pairs; ++i, ++turn) {
      const int stage = shared.pipe.to_fill(turn, 4 * kTileBytes), key = t.base + t.first_key() + i * kPair;
      load_pair(shared.k[stage], maps.k, kv_head * kTile, key, shared.pipe.full[stage]);
      load_pair(shared.v[stage], maps.v, kv_head * kTile, key, shared.pipe.full[stage]);
    }
  }
}

// The values of a thread's two rows, in the columns that it holds of an accumulator.
struct OwnValues {
  uint32_t pairs[2][8];
  __device__ void read(const Tile& tile) {
    const int lane = lane_id();
    int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    asm volatile("" : "+r"(row));  // or the places would be kept over the loop over keys, which needs every register
#pragma unroll
    for (int b = 0; b < 2; ++b) {  // row % 8 is the same for both
#pragma unroll
      for (int j = 0; j < 8; ++j)
        pairs[b][j] =
            *reinterpret_cast<const uint32_t*>(&tile.at[(row + 8 * b) * kTile + (j ^ (row % 8)) * 8 + 2 * (lane % 4)]);
    }
  }
  __device__ float2 pair(int b, int j) const {
    return __bfloat1622float2(reinterpret_cast<const __nv_bfloat162&>(pairs[b][j]));
  }
};

// A warpgroup's 64 queries over all their keys; `begun` turns were taken before. Gives the turns taken after; the last one's
// tiles are the caller's to release.
template <bool Segmented>
__device__ int attend(Shared& shared, const HeadShape& s, const Task& t, const Tile& q, int query, int begun, Accumulator& sum,
                      Rows& rows) {
  auto& pipe = shared.pipe;
  const float c = s.scale * kLog2E;
  const int own_row = query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane_id() / 4;
  const int first_key = t.first_key(), pairs = t.pairs;
  const Starts<Segmented> starts(s, query, own_row, t.end);
  WideAccumulator scores;
  Fragment even[2], odd[2];
  float shrink[2];
  const auto score = [&](Fragment(&weights)[2], int turn) {
    hide(scores, starts, query, own_row, first_key + turn * kPair);
    weigh(weights, scores, rows, c, shrink);
  };
  const auto add_values = [&](const Fragment(&weights)[2], int turn) {
    add_product(sum, weights[0], shared.v[(begun + turn) % Shared::kStages][0]);
    add_product(sum, weights[1], shared.v[(begun + turn) % Shared::kStages][1]);
  };
  const auto shrink_sums = [&](int turn) {  // when the values of a turn have been added
    wgmma_wait<0>();
    pin(sum);
    pipe.release(begun + turn);
#pragma unroll
    for (int i = 0; i < 32; ++i) sum[i] *= shrink[i / 2 % 2];
  };
  // The weights of the next turn are computed while the values of one are added.
  const auto take = [&](const Fragment(&weights)[2], Fragment(&next)[2], int turn) {
    multiply_rows(scores, q, shared.k[pipe.filled(begun + turn + 1)]);
    add_values(weights, turn);
    wgmma_wait<2>();
    pin(scores);
    score(next, turn + 1);
    shrink_sums(turn);
  };
  multiply_rows(scores, q, shared.k[pipe.filled(begun)]);
  wgmma_wait<0>();
  pin(scores);
  score(even, 0);
  int turn = 0;
  for (; turn + 2 < pairs; turn += 2) {
    take(even, odd, turn);
    take(odd, even, turn + 1);
  }
  if (turn + 1 < pairs) {
    take(even, odd, turn);
    add_values(odd, turn + 1);
  } else {
    add_values(even, turn);
  }
  wgmma_wait<0>();
  pin(sum);
  return begun + pairs;
}

// What becomes of the heads' outputs, and where it goes.
struct Output {
  bf16* z;
  float *lse, *dot;
  const float* logit;  // null: no gate
  bool exclusive;
};

// Asks for the logits of a thread's two rows, so that they are near when store_rows wants them.
__device__ inline void expect_logits(const HeadShape& s, const Task& t, int query, const Output& to) {
  if (to.logit == nullptr || lane_id() % 4 != 0) return;
  const int row = t.base + query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane_id() / 4;
#pragma unroll
  for (int b = 0; b < 2; ++b)
    if (row + 8 * b < t.base + t.end)
      asm volatile("prefetch.global.L1 [%0];" ::"l"(to.logit + int64_t{row + 8 * b} * s.heads + t.head));
}

// z = s·(y − (y·u)u), u = v/‖v‖.
template <bool Segmented>
__device__ void store_rows(const HeadShape& s, const Task& t, int query, const Accumulator& sum, const Rows& rows,
                           const OwnValues& own, const Output& to) {
  const int lane = lane_id(), row = t.base + query + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int b = 0; b < 2; ++b) {
    const float total = quad_sum(rows.total[b]);
    const int64_t head = int64_t{row + 8 * b} * s.heads + t.head;
    const bool inside = !Segmented || row + 8 * b < t.end;
    if (lane % 4 == 0 && inside) to.lse[s.statistic(row + 8 * b, t.head)] = rows.top[b] * s.scale + logf(total);
    float factor = 1.0f / total, taken = 0;  // z = factor·sum − taken·v
    if (to.logit != nullptr && inside) factor *= sigmoid(OutputRows::kGateScale * to.logit[head]);
    if (to.exclusive) {
      float squares = 0, along = 0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float2 v = own.pair(b, j);
        squares += v.x * v.x + v.y * v.y;
        along += v.x * sum[4 * j + 2 * b] + v.y * sum[4 * j + 2 * b + 1];
      }
      const float inverse = 1.0f / fmaxf(sqrtf(quad_sum(squares)), OutputRows::kNormFloor);
      along = quad_sum(along) * inverse;
      if (lane % 4 == 0 && inside) to.dot[head] = along / total;
      taken = factor * along * inverse;
    }
    if (!inside) continue;
    bf16* place = to.z + head * kTile + 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const float2 v = own.pair(b, j);
      *reinterpret_cast<uint32_t*>(place + 8 * j) =
          pack(sum[4 * j + 2 * b] * factor - taken * v.x, sum[4 * j + 2 * b + 1] * factor - taken * v.y);
    }
  }
}

template <bool Segmented>
__global__ void __launch_bounds__(kBlockThreads, 1)
    forward_kernel(const __grid_constant__ Maps maps, const HeadShape s, const DocumentTiles documents, int all_rows,
                   int* counter, const Output output) {
  extern __shared__ std::byte memory[];
  auto& shared = tiles_of<Shared>(memory);
  if (threadIdx.x == 0) {
    shared.pipe.init();
    shared.agenda.init(128 * kConsumers);
    publish_barriers();
  }
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<24>();
    if (threadIdx.x == 0)
      copy_tiles<Segmented>(shared, maps, s, documents, all_rows, (Segmented ? *documents.count : all_rows / kPair) * s.heads,
                            counter);
    return;
  }
  take_registers<240>();
  for (int n = 0, begun = 0;; ++n) {
    const int item = shared.agenda.read(n);
    if (item == shared.agenda.kEnd) return;
    Accumulator sum = {};
    Rows rows;
    OwnValues values;
    const int own = (warpgroup - 1) * kTile;
    const Task begins = Task::of<Segmented>(s, documents, all_rows, item);
    expect_logits(s, begins, begins.first_query + own, output);
    begun = attend<Segmented>(shared, s, begins, shared.q[n % Shared::kPlaces][warpgroup - 1], begins.first_query + own, begun,
                              sum, rows);
    values.read(shared.v[(begun - 1) % Shared::kStages][warpgroup - 1]);
    shared.pipe.release(begun - 1);
    // Not kept: the loop over keys needs every register.
    const Task t = Task::of<Segmented>(s, documents, all_rows, shared.agenda.again(n));
    shared.agenda.release(n);
    store_rows<Segmented>(s, t, t.first_query + own, sum, rows, values, output);
  }
}

}  // namespace

void attention_tiles_forward(Scratch& scratch, const Attention& op, const Forward<Attention>& f) {
  const HeadShape s = head_shape(op, f.in);
  const Maps maps{tile_map(f.in.q), tile_map(f.in.k), tile_map(f.in.v)};
  const auto rows = static_cast<int>(f.in.q.rows());
  const DocumentTiles documents = document_tiles(scratch, op, f.in);
  int* counter = scratch.take<int>(1);
  check(cudaMemsetAsync(counter, 0, sizeof(int), scratch.stream()), "cudaMemsetAsync");
  launch_tiles<Shared>(scratch, f.in.segment_start ? forward_kernel<true> : forward_kernel<false>,
                       staying_blocks(scratch.context(), rows / kPair * s.heads), maps, s, documents, rows, counter,
                       Output{pointer<bf16>(f.out.z), pointer<float>(f.saved.lse), pointer<float>(f.saved.dot),
                              pointer<float>(f.in.logit), op.exclusive});
  check_launch("attention of 64-wide heads");
}

}  // namespace fairway::cuda
