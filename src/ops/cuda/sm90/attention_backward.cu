// Gradients of causal attention over heads of 64 in bf16, on Hopper's tensor cores, in one kernel with a fixed order of
// summation. With P = exp(scale·qkᵀ − lse) and along = Σ_e dY·Y of each query:
// dV = Pᵀ·dY, dS = P ⊙ (dY·Vᵀ − along), dQ = scale·dS·K, dK = scale·dSᵀ·Q.
//
// A block owns 128 keys, a warpgroup 64 of them, and walks over the queries from its own on: dk and dv stay in registers.
// dq is summed in float32 in global memory, a query's blocks of keys one after the other from its own backwards. They are begun
// in that order too, and each begins at its own queries, so the one before has always been there a turn earlier: nobody waits.
#include "ops/cuda/attention_tiles.h"
#include "ops/cuda/head_output.h"
#include "ops/cuda/sm90/attention_sums.cuh"

namespace fairway::cuda {
namespace {

using namespace sm90;

// dq of a turn is multiplied a turn later, so that a warpgroup seldom waits for the other's dS; a third place keeps the faster
// one from writing over what the slower one still reads.
constexpr int kSlopes = 3;

struct Shared {
  static constexpr int kStages = 2;
  Tile k[2], v[2], q[kStages][2], dy[kStages][2];
  Tile slopes[kSlopes][2][2];  // dSᵀ of three turns, of each warpgroup's keys, of each half of the queries
  FloatTile dq[2];             // of each half of the queries
  PairStatistics stats[kStages][kTile];
  Pipe<kStages> pipe;
  Agenda<1> agenda;  // its tiles are k and v
  Barrier slopes_written[kSlopes], dq_written[2], dq_sent[2];
};

struct Maps {
  CUtensorMap q, k, v, dy;
};
struct Statistics {
  const PairStatistics* of_pairs;  // (B, H, slots/2)
  int slots;                       // of a head and sequence
  DocumentTiles documents;
};

// Where the documents end of a thread's two keys and of the tile's first, the earliest of all: queries from there on do not see
// them.
template <bool Segmented>
struct Ends {
  int of_row[2], earliest;
  __device__ Ends(const HeadShape& s, const int* ends, int key, int row)
      : of_row{of(s, ends, row), of(s, ends, row + 8)}, earliest(of(s, ends, key)) {}
  // A tile may go on behind the last row, where nobody looks.
  __device__ static int of(const HeadShape& s, const int* ends, int row) {
    return Segmented ? ends[min(row, s.length - 1)] : s.length;
  }
};

// exp2(score·c − lse) of keys (rows) × queries (columns), 0 where a query does not see a key. The accumulators of scores are
// read only: a product that replaces them may be enqueued at once.
template <bool Cut, bool Segmented>
__device__ void weigh(Fragment& to, const float* scores, float c, const PairStatistics* stats, const Ends<Segmented>& ends,
                      int row, int query) {
  const int lane = lane_id();
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int column = 8 * j + 2 * (lane % 4);
    const float2 lse = *reinterpret_cast<const float2*>(stats[column / 2].lse);
    float p[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i] = exp2_fast(fmaf(scores[4 * j + i], c, -(i % 2 == 0 ? lse.x : lse.y)));
      const int of_query = query + column + i % 2;
      if (Cut && (row + 8 * (i / 2) > of_query || (Segmented && of_query >= ends.of_row[i / 2]))) p[i] = 0;
    }
    round_four(to, j, p);
  }
}
// p ⊙ (dp − along).
__device__ inline void key_slopes(Fragment& to, const float* dp, const Fragment& p, const PairStatistics* stats) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float2 along = *reinterpret_cast<const float2*>(stats[4 * j + lane_id() % 4].along);
    float slope[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) slope[i] = rounded(p, 4 * j + i) * (dp[4 * j + i] - (i % 2 == 0 ? along.x : along.y));
    round_four(to, j, slope);
  }
}

// The block's keys and the turns it takes: all queries that see them, the heads of each in turn. A block in the next document
// then reaches the queries that two documents share at once, in all heads, and does not keep the blocks of this one waiting.
struct Walk {
  int sequence, kv_head, first_key, end, base, first_slot, group, total;  // `end` of the keys, in the batch
  template <bool Segmented>
  __device__ static Walk of(const HeadShape& s, const DocumentTiles& documents, int ticket) {
    Walk w;
    w.group = s.heads / s.kv_heads;
    if constexpr (Segmented) {
      const int tile = documents.order[ticket / s.kv_heads];
      const SegmentTile keys = documents.tiles[tile];
      w.sequence = 0, w.kv_head = ticket % s.kv_heads;
      w.first_key = keys.first, w.end = keys.end, w.first_slot = tile * kPair;
      w.total = w.group * keys.reach;
    } else {
      const int blocks = s.length / kPair, item = ticket / blocks;
      w.sequence = item / s.kv_heads, w.kv_head = item % s.kv_heads;
      w.first_key = w.first_slot = (blocks - 1 - ticket % blocks) * kPair;
      w.end = (w.sequence + 1) * s.length;
      w.total = w.group * ((s.length - w.first_key) / kPair);
    }
    w.base = w.sequence * s.length;
    return w;
  }
  __device__ int head(int turn) const { return kv_head * group + turn % group; }
  __device__ int query(int turn) const { return first_key + turn / group * kPair; }
  // Of a turn's first query.
  __device__ int64_t slot(const HeadShape& s, int slots, int turn) const {
    return int64_t{sequence * s.heads + head(turn)} * slots + first_slot + turn / group * kPair;
  }
};

// The queries of a block's next turns come before its keys, which wait until those of the item before are done with.
template <bool Segmented>
__device__ void copy_tiles(Shared& shared, const Maps& maps, const HeadShape& s, const Statistics& stats, int items,
                           int* ticket) {
  auto& pipe = shared.pipe;
  int turn = 0;  // of all items
  const auto load_turn = [&](const Walk& w, int of_item) {
    const int stage = pipe.to_fill(turn++, 4 * kTileBytes + sizeof(shared.stats[0]));
    const int head = w.head(of_item), query = w.base + w.query(of_item);
    load_pair(shared.q[stage], maps.q, head * kTile, query, pipe.full[stage]);
    load_pair(shared.dy[stage], maps.dy, head * kTile, query, pipe.full[stage]);
    load_bytes(shared.stats[stage], stats.of_pairs + w.slot(s, stats.slots, of_item) / 2, sizeof(shared.stats[0]),
               pipe.full[stage]);
  };
  for (int n = 0;; ++n) {
    const int item = atomicAdd(ticket, 1);
    if (item >= items) return shared.agenda.announce_end(n);
    const Walk w = Walk::of<Segmented>(s, stats.documents, item);
    const int ahead = min(w.total, Shared::kStages);
    for (int i = 0; i < ahead; ++i) load_turn(w, i);
    Barrier& landed = shared.agenda.announce(n, item, 4 * kTileBytes);
    load_pair(shared.k, maps.k, w.kv_head * kTile, w.base + w.first_key, landed);
    load_pair(shared.v, maps.v, w.kv_head * kTile, w.base + w.first_key, landed);
    for (int i = ahead; i < w.total; ++i) load_turn(w, i);
  }
}

// Adds each turn's dq to the sums when the block's place in the order has come.
template <bool Segmented>
__device__ void send_sums(Shared& shared, const HeadShape& s, const Statistics& stats, const Sums& sums) {
  for (int n = 0, all = 0;; ++n) {
    const int item = shared.agenda.read(n);
    if (item == shared.agenda.kEnd) return;
    const Walk w = Walk::of<Segmented>(s, stats.documents, item);
    shared.agenda.release(n);
    for (int turn = 0; turn < w.total; ++turn, ++all) {
      const int64_t pair = w.slot(s, stats.slots, turn) / kPair;
      const int before = turn / w.group;  // blocks of keys nearer to these queries
      if (before > 0) wait_for_count(sums.added + pair, before);
      for (int half = 0; half < 2; ++half) {
        shared.dq_written[half].wait(static_cast<uint32_t>(all) % 2);
        FloatTile &to = sums.tiles[2 * pair + half], &from = shared.dq[half];
        before > 0 ? add_floats(to.at, from.at, sizeof(FloatTile)) : store_bytes(&to, &from, sizeof(FloatTile));
        commit_stores();
        wait_stores_read();
        shared.dq_sent[half].arrive();
      }
      wait_stores();
      count_up(sums.added + pair);
    }
  }
}

// A warpgroup's dq into its tile, once the turn before has left it.
__device__ void hand_over(Shared& shared, int half, int turn, const Accumulator& dq) {
  if (turn > 0) shared.dq_sent[half].wait(static_cast<uint32_t>(turn - 1) % 2);
  const int lane = lane_id(), row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int b = 0; b < 2; ++b)  // row % 8 is the same for both
      *reinterpret_cast<float2*>(shared.dq[half].at + (row + 8 * b) * kTile + (j ^ (row % 8)) * kPiece + 2 * (lane % 4)) =
          make_float2(dq[4 * j + 2 * b], dq[4 * j + 2 * b + 1]);
  }
  publish_to_async();
  __syncwarp();
  if (lane == 0) shared.dq_written[half].arrive();
}

__device__ void multiply_slopes(Shared& shared, int half, int turn, Accumulator& dq) {
  multiply_columns(dq, shared.slopes[turn % kSlopes][0][half], shared.slopes[turn % kSlopes][1][half], shared.k);
}

// The turns of the block's n-th item, `begun` turns after its first.
template <bool Segmented>
__device__ void multiply_turns(Shared& shared, const HeadShape& s, const int* all_ends, const Walk& w, int mine, int n,
                               int begun, Places dk, Places dv) {
  auto& pipe = shared.pipe;
  const int key = w.first_key + mine * kTile;  // of the sequence
  const int row = key + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane_id() / 4;
  const Ends<Segmented> ends(s, all_ends, key, row);
  const float c = s.scale * kLog2E;
  const Tile &k = shared.k[mine], &v = shared.v[mine];
  Accumulator dk_sum = {}, dv_sum = {}, dq;
  const int end = begun + w.total;
  for (int turn = begun; turn < end; ++turn) {
    const int stage = pipe.filled(turn), query = w.query(turn - begun);
    const PairStatistics* of_stage = shared.stats[stage];
    WideAccumulator scores, dp;
    Fragment weights[2], slopes[2];
    multiply_rows(scores, k, shared.q[stage]);
    multiply_rows(dp, v, shared.dy[stage]);
    wgmma_wait<1>();
    pin(scores);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int first = query + kTile * half;
      key >= first || (Segmented && first + kTile > ends.earliest)
          ? weigh<true>(weights[half], scores + 32 * half, c, of_stage + 32 * half, ends, row, first)
          : weigh<false>(weights[half], scores + 32 * half, c, of_stage + 32 * half, ends, row, first);
      add_product(dv_sum, weights[half], shared.dy[stage][half]);
    }
    wgmma_wait<2>();
    pin(dp);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      key_slopes(slopes[half], dp + 32 * half, weights[half], of_stage + 32 * half);
      add_product(dk_sum, slopes[half], shared.q[stage][half]);
      store_fragment(shared.slopes[turn % kSlopes][mine][half], slopes[half]);
    }
    publish_to_async();
    if (turn > begun) shared.slopes_written[(turn - 1) % kSlopes].wait(static_cast<uint32_t>((turn - 1) / kSlopes) % 2);
    multiply_slopes(shared, mine, turn + kSlopes - 1, dq);  // of the turn before; nobody looks at the first
    wgmma_wait<1>();
    pin(dk_sum);
    pin(dv_sum);
    pipe.release(turn);
    wgmma_wait<0>();
    pin(dq);
    __syncwarp();
    if (lane_id() == 0) shared.slopes_written[turn % kSlopes].arrive();
    if (turn > begun) hand_over(shared, mine, turn - 1, dq);
  }
  shared.slopes_written[(end - 1) % kSlopes].wait(static_cast<uint32_t>((end - 1) / kSlopes) % 2);
  multiply_slopes(shared, mine, end - 1, dq);
  wgmma_wait<0>();
  pin(dq);
  shared.agenda.release(n);
  hand_over(shared, mine, end - 1, dq);
  dk.store(w.base + key, w.end, w.kv_head * kTile, dk_sum, s.scale);
  dv.store(w.base + key, w.end, w.kv_head * kTile, dv_sum, 1);
}

template <bool Segmented>
__global__ void __launch_bounds__(kBlockThreads, 1)
    backward_kernel(const __grid_constant__ Maps maps, const HeadShape s, int blocks, const Statistics stats, const Sums sums,
                    Places dk, Places dv) {
  extern __shared__ std::byte memory[];
  auto& shared = tiles_of<Shared>(memory);
  if (threadIdx.x == 0) {
    shared.pipe.init();
    shared.agenda.init(128 * kConsumers + 1);
    for (Barrier& written : shared.slopes_written) written.init(4 * kConsumers);
    for (int i = 0; i < 2; ++i) {
      shared.dq_written[i].init(4);
      shared.dq_sent[i].init(1);
    }
    publish_barriers();
  }
  __syncthreads();
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0)
      copy_tiles<Segmented>(shared, maps, s, stats, (Segmented ? *stats.documents.count : blocks) * s.kv_heads, sums.ticket);
    if (threadIdx.x == 32) send_sums<Segmented>(shared, s, stats, sums);
    return;
  }
  take_registers<232>();
  for (int n = 0, begun = 0;; ++n) {
    const int item = shared.agenda.read(n);
    if (item == shared.agenda.kEnd) return;
    const Walk walk = Walk::of<Segmented>(s, stats.documents, item);
    multiply_turns<Segmented>(shared, s, stats.documents.ends, walk, warpgroup - 1, n, begun, dk, dv);
    begun += walk.total;
  }
}

}  // namespace

void attention_tiles_backward(Scratch& scratch, const Attention& op, const Backward<Attention>& b,
                              const Backward<HeadOutput>& output) {
  const HeadShape s = head_shape(op, b.in);
  const DocumentTiles documents = document_tiles(scratch, op, b.in);
  const HeadStatistics statistics = head_statistics(scratch, s, documents, b.saved.lse);
  const int64_t slots = b.in.q.rows() / s.length * s.heads * statistics.slots, counters = slots / kPair + 1;
  Sums sums{scratch.take<FloatTile>(slots / kTile), scratch.take<int>(counters), nullptr};
  sums.ticket = sums.added + counters - 1;
  check(cudaMemsetAsync(sums.added, 0, static_cast<size_t>(counters) * sizeof(int), scratch.stream()), "cudaMemsetAsync");
  const bool shapes = op.shapes_output(b.in);
  if (!shapes || !head_output_rows_backward(scratch, op.output(), output, statistics)) {
    if (shapes) head_output_backward(scratch, op.output(), output);
    gather_statistics(scratch, statistics, b.out.z, b.dout.z);
  }
  const Backward<Attention> inner = op.before_output(b, shapes ? output.din.y : b.dout.z);
  const Maps maps{tile_map(b.in.q), tile_map(b.in.k), tile_map(b.in.v), tile_map(inner.dout.z)};
  const auto blocks = static_cast<int>(b.in.q.rows() / kPair);
  launch_tiles<Shared>(scratch, b.in.segment_start ? backward_kernel<true> : backward_kernel<false>,
                       staying_blocks(scratch.context(), blocks * s.kv_heads), maps, s, blocks,
                       Statistics{statistics.of_pairs, static_cast<int>(statistics.slots), documents}, sums, places(b.din.k),
                       places(inner.din.v));
  if (b.din.q) round_sums(scratch, s, statistics, sums, b.din.q);
  check_launch("attention' of 64-wide heads");
}

}  // namespace fairway::cuda
