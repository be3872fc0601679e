// Packing and threading around the tiles of isa/attention_*.inl. The rows are cut into spans that see nothing of each other:
// the sequences of T rows, or runs of whole segments. Forward hands out tiles of queries, backward spans of a kv head.
#include "ops/cpu/flash.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/blocks.h"
#include "ops/cpu/isa/kernels.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kPackRows = 64;   // rows copied by one task
constexpr int64_t kSpanRows = 256;  // shorter segments share a span
constexpr int64_t kShortSpan =
    512;  // up to here keys of all heads share a cache, so a tile of rows is read for all heads at once
constexpr float kLog2e = 1.44269504f;

void check(const FlashShape& s) {
  FAIRWAY_ASSERT(s.rows > 0 && s.row_length > 0 && s.rows % s.row_length == 0, "attention needs whole sequences");
  FAIRWAY_ASSERT(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "kv heads must divide heads");
  FAIRWAY_ASSERT(s.head_size > 0 && s.head_size % 8 == 0 && s.head_size <= kMaxHeadSize, "head size must be 8, 16, … 128");
}

// Where the spans begin, and how many tiles of queries lie before each; both arrays end with the total.
struct Spans {
  Spans(const FlashShape& s, const int32_t* segment_start, int64_t tile, int32_t* storage)
      : begin(storage), tiles(storage + capacity(s)) {
    begin[0] = tiles[0] = 0;
    // Spans rest on this, and keys before a span would be another's memory.
    for (int64_t row = 0; segment_start && row < s.rows; ++row) {
      FAIRWAY_ASSERT(segment_start[row] >= (row > 0 ? segment_start[row - 1] : 0) && segment_start[row] <= row,
                     "segment starts must not decrease and lie at or before their row");
    }
    for (int64_t row = 1; row <= s.rows; ++row) {
      // A row that starts at itself cuts: those after it start no earlier.
      const bool cut = segment_start ? row == s.rows || (segment_start[row] == row && row - begin[count] >= kSpanRows)
                                     : row % s.row_length == 0;
      if (!cut) continue;
      tiles[count + 1] = static_cast<int32_t>(tiles[count] + ceil_div(row - begin[count], tile));
      begin[++count] = static_cast<int32_t>(row);
    }
  }
  static int64_t capacity(const FlashShape& s) { return s.rows / std::min(s.row_length, kSpanRows) + 2; }
  int64_t longest() const {
    int64_t rows = 0;
    for (int64_t i = 0; i < count; ++i) rows = std::max<int64_t>(rows, begin[i + 1] - begin[i]);
    return rows;
  }
  int64_t span_of_tile(int64_t tile) const { return std::upper_bound(tiles, tiles + count + 1, tile) - tiles - 1; }

  int32_t* begin;
  int32_t* tiles;
  int64_t count = 0;
};

size_t span_bytes(const FlashShape& s) { return 2 * Spans::capacity(s) * sizeof(int32_t) + 2 * kCacheLine; }

// packed[head][row][e] = x[row][head][e]
struct HeadSplit {
  int64_t rows, heads, head_size;
  void pack(const float* x, float* packed, int64_t row, const RowKernels& kernel) const {
    for (int64_t head = 0; head < heads; ++head) {
      kernel.copy(x + (row * heads + head) * head_size, packed + (head * rows + row) * head_size, head_size);
    }
  }
};

template <class Body>
void for_each_row(ThreadPool& pool, int64_t rows, Body&& body) {
  pool.parallel_for(ceil_div(rows, kPackRows), [&](int64_t task) {
    for (int64_t row = task * kPackRows; row < std::min(rows, (task + 1) * kPackRows); ++row) body(row);
  });
}

struct PackedKv {
  const float *k, *v;
};

void forward_tile(const FlashForward& a, const Spans& spans, PackedKv packed, int64_t tile, int64_t head) {
  const FlashShape& s = a.shape;
  const AttentionKernels& kernel = kernels().attention;
  const int64_t e = s.head_size, span = spans.span_of_tile(tile), origin = spans.begin[span];
  const int64_t row = origin + (tile - spans.tiles[span]) * kernel.queries;
  const int64_t kv = (head / (s.heads / s.kv_heads) * s.rows + origin) * e;
  AttentionForwardTile t;
  t.head_size = e, t.scale = s.scale;
  t.q = a.q + (row * s.heads + head) * e, t.ld_q = s.heads * e;
  t.k = packed.k + kv, t.v = packed.v + kv;
  t.first = row - origin, t.count = std::min<int64_t>(kernel.queries, spans.begin[span + 1] - row);
  t.start = a.segment_start ? a.segment_start + row : nullptr, t.origin = origin;
  t.y = a.y + (row * s.heads + head) * e, t.ld_y = s.heads * e;
  t.lse = a.lse + row * s.heads + head, t.ld_lse = s.heads;
  kernel.forward(t);
}

// One thread's scratch for the backward pass of one span and kv head: dense copies per query head, hot in its cache.
struct BackwardSlot {
  static int64_t floats(const FlashShape& s, int64_t rows) { return rows * (s.heads / s.kv_heads) * (3 * s.head_size + 2); }
  BackwardSlot(const FlashShape& s, int64_t rows, float* memory)
      : q(memory),
        dy(q + rows * (s.heads / s.kv_heads) * s.head_size),
        dq(dy + rows * (s.heads / s.kv_heads) * s.head_size),
        lse2(dq + rows * (s.heads / s.kv_heads) * s.head_size),
        dot(lse2 + rows * (s.heads / s.kv_heads)) {}
  float *q, *dy, *dq, *lse2, *dot;
};

void backward_span(const FlashBackward& a, int64_t origin, int64_t rows, int64_t kv_head, float* memory) {
  const FlashShape& s = a.shape;
  const RowKernels& row_kernel = kernels().rows;
  const int64_t e = s.head_size, group = s.heads / s.kv_heads;
  const BackwardSlot slot(s, rows, memory);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t head = 0; head < group; ++head) {
      const int64_t from = (origin + row) * s.heads + kv_head * group + head, to = head * rows + row;
      row_kernel.copy(a.q + from * e, slot.q + to * e, e);
      row_kernel.copy(a.dy + from * e, slot.dy + to * e, e);
      slot.lse2[to] = a.lse[from] * kLog2e;
      slot.dot[to] = row_kernel.dot(a.z + from * e, a.dz + from * e, e);
    }
  }
  std::fill_n(slot.dq, rows * group * e, 0.0f);
  AttentionBackwardSpan t;
  t.head_size = e, t.scale = s.scale, t.rows = rows, t.group = group;
  t.start = a.segment_start ? a.segment_start + origin : nullptr, t.origin = origin;
  const int64_t kv = (origin * s.kv_heads + kv_head) * e;
  t.k = a.k + kv, t.v = a.v + kv, t.ld_kv = s.kv_heads * e;
  t.q = slot.q, t.dy = slot.dy, t.dq = a.dq ? slot.dq : nullptr, t.head_stride = rows * e;
  t.lse2 = slot.lse2, t.dot = slot.dot, t.row_stride = rows;
  t.dk = a.dk ? a.dk + kv : nullptr, t.dv = a.dv ? a.dv + kv : nullptr;
  t.add_dk = a.add_dk, t.add_dv = a.add_dv;
  kernels().attention.backward(t);
  for (int64_t row = 0; a.dq && row < rows; ++row) {
    for (int64_t head = 0; head < group; ++head) {
      float* to = a.dq + ((origin + row) * s.heads + kv_head * group + head) * e;
      (a.add_dq ? row_kernel.add : row_kernel.copy)(slot.dq + (head * rows + row) * e, to, e);
    }
  }
}

}  // namespace

size_t flash_forward_workspace(const FlashShape& s) {
  return 2 * s.rows * s.kv_heads * s.head_size * sizeof(float) + span_bytes(s);
}

size_t flash_backward_workspace(const FlashShape& s) {
  return s.rows * s.heads * (3 * s.head_size + 2) * sizeof(float) + span_bytes(s);
}

void flash_forward(ThreadPool& pool, const FlashForward& a, void* workspace) {
  const FlashShape& s = a.shape;
  check(s);
  const Spans spans(s, a.segment_start, kernels().attention.queries, align<int32_t>(workspace));
  float* k = align<float>(spans.tiles + Spans::capacity(s));
  float* v = k + s.rows * s.kv_heads * s.head_size;
  const HeadSplit split{s.rows, s.kv_heads, s.head_size};
  for_each_row(pool, s.rows, [&](int64_t row) {
    split.pack(a.k, k, row, kernels().rows);
    split.pack(a.v, v, row, kernels().rows);
  });
  const int64_t tiles = spans.tiles[spans.count];
  if (spans.longest() <= kShortSpan) {
    pool.parallel_for(tiles, [&](int64_t tile) {
      for (int64_t head = 0; head < s.heads; ++head) forward_tile(a, spans, {k, v}, tile, head);
    });
  } else {
    pool.parallel_for(tiles * s.heads, [&](int64_t task) { forward_tile(a, spans, {k, v}, task % tiles, task / tiles); });
  }
}

void flash_backward(ThreadPool& pool, const FlashBackward& a, void* workspace) {
  const FlashShape& s = a.shape;
  check(s);
  const Spans spans(s, a.segment_start, kernels().attention.queries, align<int32_t>(workspace));
  float* memory = align<float>(spans.tiles + Spans::capacity(s));
  const int64_t longest = spans.longest();
  // The workspace holds every row of every head once, so as many slots of the longest span as that makes.
  const int64_t slots = std::min<int64_t>(pool.threads(), s.rows * s.kv_heads / longest);
  pool.parallel_for_slots(slots, spans.count * s.kv_heads, [&](int64_t slot, int64_t task) {
    const int64_t origin = spans.begin[task / s.kv_heads], rows = spans.begin[task / s.kv_heads + 1] - origin;
    backward_span(a, origin, rows, task % s.kv_heads, memory + slot * BackwardSlot::floats(s, longest));
  });
}

}  // namespace fairway::cpu
