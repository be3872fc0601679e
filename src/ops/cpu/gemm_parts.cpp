// Whoever takes a part of K packs a chunk of its rows of A and B into scratch of its own and multiplies at once, while both are
// still near; nothing is packed twice and no thread reads what another has packed.
#include "ops/cpu/gemm_parts.h"

#include <algorithm>

#include "ops/cpu/blocks.h"

namespace fairway::cpu {
namespace {

constexpr int64_t kParts = 8, kLeastRows = 128;  // of K; a part has so many rows at least
constexpr int64_t kChunkRows = 128;              // a panel of B with so many rows stays in the first-level cache
constexpr int64_t kLeastChunk = 64;

int64_t round_up(int64_t count, int64_t step) { return ceil_div(count, step) * step; }

// Floats of one row of K, packed.
int64_t row_floats(const GemmArgs& args, const GemmKernels& kernel) {
  return round_up(args.m, kernel.mr) + round_up(args.n, kernel.nr);
}

int64_t chunk_rows(const GemmArgs& args, const GemmKernels& kernel) {
  const int64_t slack = ceil_div(args.m, kernel.mr) * kPanelSlack;
  return std::min(kChunkRows, (kThreadFloats - slack) / row_floats(args, kernel));
}

// Rows of C [begin, end) from rows of K [first, last), written to `out`, whose rows are ld apart.
struct Part {
  int64_t begin, end, first, last;
  float* out;
  int64_t ld;
};

void multiply_part(const GemmArgs& args, const Part& part, float* scratch) {
  const GemmKernels& kernel = kernels().gemm;
  GemmBlock block;
  block.m = part.end - part.begin, block.n = args.n;
  block.a_by_column = true;
  block.c = part.out, block.ldc = part.ld;
  block.alpha = args.alpha;
  const int64_t most = chunk_rows(args, kernel), chunks = ceil_div(part.last - part.first, most);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t p = part.first + part_begin(part.last - part.first, chunks, chunk);
    block.k = part.first + part_begin(part.last - part.first, chunks, chunk + 1) - p;
    float* b = scratch;
    float* a = b + round_up(args.n, kernel.nr) * block.k;
    kernel.pack_b_columns(args.b + p * args.ldb, args.ldb, args.n, block.k, b);
    kernel.pack_a_columns(args.a + p * args.lda + part.begin, args.lda, block.m, block.k, a, kernel.mr * block.k + kPanelSlack);
    block.a = a, block.b = b;
    block.load_c = chunk > 0;
    kernel.block(block);
  }
}

}  // namespace

bool sums_in_parts(const GemmArgs& args) {
  const GemmKernels& kernel = kernels().gemm;
  return args.layout == ProductLayout::tn && args.epilogue.kind == EpilogueKind::none && args.k >= kParts * kLeastRows &&
         kParts * args.m * round_up(args.n, kLineFloats) <= kSharedFloats && chunk_rows(args, kernel) >= kLeastChunk;
}

void gemm_in_parts(ThreadPool& pool, const GemmArgs& args, void* workspace) {
  const GemmKernels& kernel = kernels().gemm;
  float* scratch = align<float>(workspace);
  float* partial = scratch + pool.threads() * kThreadFloats;  // (kParts, M, ld)
  const int64_t ld = round_up(args.n, kLineFloats), row_panels = ceil_div(args.m, kernel.mr);
  // Rows of C are shared out only where parts alone leave threads without work: B is packed again for each.
  const int64_t row_blocks = std::clamp<int64_t>(2 * pool.threads() / kParts, 1, row_panels);
  pool.parallel_for_slots(pool.threads(), kParts * row_blocks, [&](int64_t slot, int64_t task) {
    const int64_t i = task / row_blocks, block = task % row_blocks;
    Part part;
    part.begin = part_begin(row_panels, row_blocks, block) * kernel.mr;
    part.end = std::min(args.m, part_begin(row_panels, row_blocks, block + 1) * kernel.mr);
    part.first = part_begin(args.k, kParts, i), part.last = part_begin(args.k, kParts, i + 1);
    part.out = partial + (i * args.m + part.begin) * ld, part.ld = ld;
    multiply_part(args, part, scratch + slot * kThreadFloats);
  });
  const RowKernels& rows = kernels().rows;
  constexpr int64_t kRows = 16;
  pool.parallel_for(ceil_div(args.m, kRows), [&](int64_t task) {
    for (int64_t row = task * kRows; row < std::min(args.m, (task + 1) * kRows); ++row) {
      float* c = args.c + row * args.ldc;
      for (int64_t i = 0; i < kParts; ++i) {
        (i == 0 && !args.accumulate ? rows.copy : rows.add)(partial + (i * args.m + row) * ld, c, args.n);
      }
    }
  });
}

}  // namespace fairway::cpu
