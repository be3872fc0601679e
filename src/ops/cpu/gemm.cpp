// The blocking and threading around the packed kernels of isa/gemm.inl. A group of K chunks of B is packed by all threads
// into shared scratch, then blocks of C are handed out; whoever takes one reads its rows of A where they lie, or packs its part
// of A into scratch of its own where they lie badly.
#include "ops/cpu/gemm.h"

#include <algorithm>

#include "base/error.h"
#include "ops/cpu/blocks.h"
#include "ops/cpu/gemm_parts.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kPackedB = kSharedFloats, kPackedA = kThreadFloats;
constexpr int64_t kPanelsPerTask = 4;     // panels of B packed at a time
constexpr int64_t kColumnsInPlace = 384;  // up to so many columns, copying rows of A never pays
constexpr int64_t kAliasedStride = 2048;  // floats: rows so far apart fall into few sets of the second cache
// Blocks of C: small ones, since a busy machine slows one thread more than another.
constexpr int64_t kTasksPerThread = 16, kMostTasksPerThread = 32;
constexpr int64_t kTaskFlops = int64_t{64} << 20;  // about 0.4 ms: worth a block of its own
// floats of C beyond which its lines are not read before they are overwritten
constexpr int64_t kLargeC = int64_t{2} << 20;
constexpr int64_t kLargeSecond = int64_t{1} << 20;  // the same for `second`, which nobody reads soon

bool on_lines(const float* p, int64_t ld) { return ld % kLineFloats == 0 && reinterpret_cast<uintptr_t>(p) % kCacheLine == 0; }

class Product {
 public:
  Product(ThreadPool& pool, const GemmArgs& args, void* workspace)
      : pool_(pool), args_(args), kernels_(kernels().gemm), packed_a_(align<float>(workspace)) {
    packed_b_ = packed_a_ + pool.threads() * kPackedA;
    k_chunk_ = ceil_div(args.k, ceil_div(args.k, kernels_.max_k));
    chunks_ = ceil_div(args.k, k_chunk_);
    const int64_t most_columns = std::max<int64_t>(1, kPackedB / (k_chunk_ * kernels_.nr));
    const int64_t panels = ceil_div(args.n, kernels_.nr);
    column_blocks_ = ceil_div(panels, most_columns);
    past_caches_ = args.m * args.n >= kLargeC && on_lines(args.c, args.ldc);
    second_past_caches_ = args.epilogue.second != nullptr && args.m * args.n >= kLargeSecond &&
                          on_lines(args.epilogue.second, args.epilogue.ld_second);
    in_place_ = args.layout != ProductLayout::tn && (args.n <= kColumnsInPlace || args.lda % kAliasedStride != 0);
  }

  void run() {
    const int64_t panels = ceil_div(args_.n, kernels_.nr);
    for (int64_t block = 0; block < column_blocks_; ++block) {
      panel_begin_ = part_begin(panels, column_blocks_, block);
      panel_end_ = part_begin(panels, column_blocks_, block + 1);
      const int64_t chunk_floats = (panel_end_ - panel_begin_) * kernels_.nr * k_chunk_;
      const int64_t group = std::max<int64_t>(1, kPackedB / chunk_floats);
      for (chunk_begin_ = 0; chunk_begin_ < chunks_; chunk_begin_ = chunk_end_) {
        chunk_end_ = std::min(chunks_, chunk_begin_ + group);
        pack_b();
        multiply();
      }
    }
  }

 private:
  int64_t k_of(int64_t chunk) const { return std::min(k_chunk_, args_.k - chunk * k_chunk_); }

  // Panels of one chunk lie after each other, chunks of the group too.
  float* packed_b(int64_t chunk, int64_t panel) const {
    const int64_t width = (panel_end_ - panel_begin_) * kernels_.nr;
    return packed_b_ + (chunk - chunk_begin_) * width * k_chunk_ + (panel - panel_begin_) * kernels_.nr * k_of(chunk);
  }

  void pack_b() {
    const int64_t tasks = ceil_div(panel_end_ - panel_begin_, kPanelsPerTask);
    pool_.parallel_for(tasks * (chunk_end_ - chunk_begin_), [&](int64_t task) {
      const int64_t chunk = chunk_begin_ + task / tasks;
      const int64_t panel = panel_begin_ + task % tasks * kPanelsPerTask;
      const int64_t column = panel * kernels_.nr, p = chunk * k_chunk_;
      const int64_t count = std::min(std::min(panel_end_, panel + kPanelsPerTask) * kernels_.nr, args_.n) - column;
      if (args_.layout == ProductLayout::nt) {
        kernels_.pack_b_rows(args_.b + column * args_.ldb + p, args_.ldb, count, k_of(chunk), packed_b(chunk, panel));
      } else {
        kernels_.pack_b_columns(args_.b + p * args_.ldb + column, args_.ldb, count, k_of(chunk), packed_b(chunk, panel));
      }
    });
  }

  int64_t wanted_tasks() const {
    const int64_t threads = pool_.threads(), columns = (panel_end_ - panel_begin_) * kernels_.nr;
    if (threads == 1) return 1;
    const int64_t flops = 2 * args_.m * columns * k_chunk_ * (chunk_end_ - chunk_begin_);
    return std::clamp(flops / kTaskFlops, threads * kTasksPerThread, threads * kMostTasksPerThread);
  }

  void multiply() {
    const int64_t wanted = wanted_tasks();
    const int64_t row_panels = ceil_div(args_.m, kernels_.mr), column_panels = panel_end_ - panel_begin_;
    const int64_t least = ceil_div(row_panels, kPackedA / kernels_.a_panel);
    // Row blocks of two panels or more keep packing A cheap, of four where they are cut out of longer rows; columns are split
    // only when rows alone leave threads idle.
    const int64_t few = ceil_div(row_panels, args_.layout == ProductLayout::tn ? 4 : 2);
    const int64_t row_blocks = std::max(least, std::min(ceil_div(least, wanted) * wanted, few));
    const int64_t column_parts = std::clamp<int64_t>(ceil_div(wanted, row_blocks), 1, ceil_div(column_panels, kPanelsPerTask));
    pool_.parallel_for_slots(pool_.threads(), row_blocks * column_parts, [&](int64_t slot, int64_t task) {
      const int64_t row = task / column_parts, part = task % column_parts;
      Range range;
      range.row_begin = part_begin(row_panels, row_blocks, row) * kernels_.mr;
      range.row_end = std::min(args_.m, part_begin(row_panels, row_blocks, row + 1) * kernels_.mr);
      range.panel_begin = panel_begin_ + part_begin(column_panels, column_parts, part);
      range.panel_end = panel_begin_ + part_begin(column_panels, column_parts, part + 1);
      multiply_block(range, packed_a_ + slot * kPackedA);
    });
  }

  struct Range {
    int64_t row_begin, row_end, panel_begin, panel_end;
  };

  void multiply_block(const Range& range, float* own) const {
    const int64_t column = range.panel_begin * kernels_.nr;
    GemmBlock block;
    block.m = range.row_end - range.row_begin;
    block.n = std::min(range.panel_end * kernels_.nr, args_.n) - column;
    block.a = own;
    block.a_by_column = args_.layout == ProductLayout::tn;
    block.c = args_.c + range.row_begin * args_.ldc + column;
    block.ldc = args_.ldc;
    block.alpha = args_.alpha;
    block.epilogue = args_.epilogue;
    Epilogue& e = block.epilogue;
    if (e.scale) e.scale += column;
    if (e.other) e.other += range.row_begin * e.ld_other + column;
    if (e.second) e.second += range.row_begin * e.ld_second + column;
    for (int64_t chunk = chunk_begin_; chunk < chunk_end_; ++chunk) {
      const int64_t p = chunk * k_chunk_;
      block.k = k_of(chunk);
      if (block.a_by_column) {
        kernels_.pack_a_columns(args_.a + p * args_.lda + range.row_begin, args_.lda, block.m, block.k, own,
                                kernels_.mr * block.k + kPanelSlack);
      } else if (in_place_) {
        const int64_t tail = block.m % kernels_.mr;
        block.a_rows = args_.a + range.row_begin * args_.lda + p;
        block.lda = args_.lda;
        if (tail > 0) kernels_.pack_a_rows(block.a_rows + (block.m - tail) * args_.lda, args_.lda, tail, block.k, own);
      } else {
        kernels_.pack_a_rows(args_.a + range.row_begin * args_.lda + p, args_.lda, block.m, block.k, own);
      }
      block.b = packed_b(chunk, range.panel_begin);
      block.load_c = chunk > 0 || args_.accumulate;
      block.last = chunk + 1 == chunks_;
      block.past_caches = block.last && !block.load_c && past_caches_;
      block.second_past_caches = block.last && second_past_caches_;
      kernels_.block(block);
    }
  }

  ThreadPool& pool_;
  const GemmArgs& args_;
  const GemmKernels& kernels_;
  float* packed_a_ = nullptr;
  float* packed_b_ = nullptr;
  bool past_caches_ = false, second_past_caches_ = false, in_place_ = false;
  int64_t k_chunk_ = 0, chunks_ = 0, column_blocks_ = 0;
  int64_t panel_begin_ = 0, panel_end_ = 0, chunk_begin_ = 0, chunk_end_ = 0;
};

}  // namespace

size_t gemm_workspace(int threads) { return (threads * kPackedA + kPackedB + kLineFloats) * sizeof(float); }

void gemm(ThreadPool& pool, const GemmArgs& args, void* workspace) {
  FAIRWAY_ASSERT(args.m > 0 && args.n > 0 && args.k > 0, "gemm needs sizes of at least 1");
  FAIRWAY_ASSERT(workspace != nullptr, "gemm needs a workspace");
  if (sums_in_parts(args)) return gemm_in_parts(pool, args, workspace);
  Product(pool, args, workspace).run();
}

void gemm_batched(ThreadPool& pool, const GemmArgs& first, const GemmBatch& batch, void* workspace) {
  for (int64_t i = 0; i < batch.count; ++i) {
    GemmArgs args = first;
    args.a += i * batch.stride_a;
    args.b += i * batch.stride_b;
    args.c += i * batch.stride_c;
    gemm(pool, args, workspace);
  }
}

}  // namespace fairway::cpu
