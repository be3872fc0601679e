// Bits mark the rows that begin runs; one block lists the runs, numbers their tiles and places them in the order.
#include "ops/cuda/segment_tiles.h"

#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kPlanners = 1024;  // threads of the block that counts
constexpr int kTileRows = SegmentTiles::kRows, kLengths = SegmentTiles::kLongestRun;

// The first row behind `row` whose document begins behind it.
__device__ int end_of(const int32_t* start, int row, int rows) {
  int low = row + 1, high = rows;
  for (int reach = 1; low < high && reach < rows; reach *= 2) {  // documents are short: look near by first
    const int place = min(row + reach, rows - 1);
    if (start[place] > row) {
      high = min(high, place);
      break;
    }
    low = place + 1;
  }
  while (low < high) {
    const int middle = (low + high) / 2;
    start[middle] > row ? high = middle : low = middle + 1;
  }
  return low;
}

// Ends of documents, and a bit for each row that begins a run of tiles.
__global__ void mark_runs(int rows, int row_length, const int32_t* start, int* ends, unsigned* begins) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  bool run = false;
  if (row < rows) {
    ends[row] = end_of(start, row, rows);
    run = start[row] == row && (row % row_length == 0 || row - start[row - 1] >= SegmentTiles::kAlone);
  }
  const unsigned word = __ballot_sync(~0u, run);
  if (lane_id() == 0 && row < rows) begins[row / 32] = word;
}

// The sum of `own` over the threads before this one; `total` is that of all.
__device__ int sum_before(int own, int& total) {
  __shared__ int of_warp[kPlanners / 32];
  const int lane = lane_id(), warp = static_cast<int>(threadIdx.x) / 32;
  int sum = own;
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(~0u, sum, step);
    if (lane >= step) sum += other;
  }
  __syncthreads();  // of_warp of the call before has been read
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < kPlanners / 32; ++w) {
    before += w < warp ? of_warp[w] : 0;
    total += of_warp[w];
  }
  return before + sum - own;
}

struct Run {
  int row, tile, place;  // its first row and tile, and where its tiles begin in the order
};

struct Cut {
  SegmentTile* tiles;
  int *order, *count;
  Run* runs;  // one more than there are
};

// The runs' rows, in order; gives their number.
__device__ int list_runs(int rows, const unsigned* begins, Run* runs) {
  const int words = (rows + 31) / 32, each = (words + kPlanners - 1) / kPlanners, first = static_cast<int>(threadIdx.x) * each;
  int own = 0, all;
  for (int w = first; w < min(first + each, words); ++w) own += __popc(begins[w]);
  int at = sum_before(own, all);
  for (int w = first; w < min(first + each, words); ++w)
    for (unsigned left = begins[w]; left != 0; left &= left - 1) runs[at++].row = 32 * w + __ffs(static_cast<int>(left)) - 1;
  if (threadIdx.x == 0) runs[all].row = rows;
  __syncthreads();
  return all;
}

__device__ int tiles_of(const Run* run) { return (run[1].row - run[0].row + kTileRows - 1) / kTileRows; }

// Numbers the runs' tiles; gives the number of tiles, and those of each length in `of_length`.
__device__ int number_tiles(int count, Run* runs, int* of_length) {
  int done = 0;
  for (int begin = 0; begin < count; begin += kPlanners) {
    const int i = begin + static_cast<int>(threadIdx.x), own = i < count ? tiles_of(runs + i) : 0;
    int all;
    const int before = sum_before(own, all);
    if (i < count) {
      runs[i].tile = done + before;
      atomicAdd(&of_length[min(own, kLengths) - 1], own);
    }
    done += all;
  }
  if (threadIdx.x == 0) runs[count].tile = done;
  __syncthreads();
  return done;
}

// Places longer runs before shorter ones, equals in the order of rows: a thread for each length.
__device__ void place_runs(int count, Run* runs, const int* of_length) {
  const int length = static_cast<int>(threadIdx.x) + 1;
  if (length > kLengths || of_length[length - 1] == 0) return;
  int place = 0;
  for (int longer = length; longer < kLengths; ++longer) place += of_length[longer];
  for (int i = 0; i < count; ++i) {
    const int own = tiles_of(runs + i);
    if (min(own, kLengths) != length) continue;
    runs[i].place = place;
    place += own;
  }
}

__global__ void __launch_bounds__(kPlanners)
    lay_out(int rows, int most, const int32_t* start, const int* ends, const unsigned* begins, Cut cut) {
  __shared__ int of_length[kLengths];
  if (threadIdx.x < kLengths) of_length[threadIdx.x] = 0;
  const int runs = list_runs(rows, begins, cut.runs), count = number_tiles(runs, cut.runs, of_length);
  place_runs(runs, cut.runs, of_length);
  __syncthreads();
  if (threadIdx.x < 4) cut.count[threadIdx.x] = threadIdx.x == 0 ? count : 0;
  for (int tile = static_cast<int>(threadIdx.x); tile < most; tile += kPlanners) {
    if (tile >= count) {
      cut.tiles[tile] = {};
      cut.order[tile] = 0;
      continue;
    }
    int low = 0, high = runs - 1;  // the last run that begins at or before the tile
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      cut.runs[middle].tile <= tile ? low = middle : high = middle - 1;
    }
    const Run run = cut.runs[low], next = cut.runs[low + 1];
    const int inside = tile - run.tile, first = run.row + inside * kTileRows, end = min(first + kTileRows, next.row);
    cut.tiles[tile] = {first, end, inside - (start[first] - run.row) / kTileRows,
                       (ends[end - 1] - 1 - run.row) / kTileRows - inside + 1};
    cut.order[run.place + next.tile - 1 - tile] = tile;
  }
}

__global__ void fill_slots(const int* count, const SegmentTile* tiles, int* slots) {
  const int tile = static_cast<int>(blockIdx.x), place = static_cast<int>(threadIdx.x);
  if (tile < *count && tiles[tile].first + place < tiles[tile].end) slots[tiles[tile].first + place] = tile * kTileRows + place;
}

}  // namespace

void cut_segments(Scratch& scratch, const int32_t* segment_start, const SegmentTilesLayout& at, int64_t row_length,
                  int32_t* out) {
  const auto rows = static_cast<int>(at.rows), most = static_cast<int>(at.most);
  const Cut cut{reinterpret_cast<SegmentTile*>(out + at.tiles()), out + at.order(), out + at.count(),
                scratch.take<Run>(most + 1)};
  auto* begins = scratch.take<unsigned>((rows + 31) / 32);
  int* ends = out + at.ends();
  mark_runs<<<(rows + kThreads - 1) / kThreads, kThreads, 0, scratch.stream()>>>(rows, static_cast<int>(row_length),
                                                                                 segment_start, ends, begins);
  lay_out<<<1, kPlanners, 0, scratch.stream()>>>(rows, most, segment_start, ends, begins, cut);
  fill_slots<<<most, kTileRows, 0, scratch.stream()>>>(cut.count, cut.tiles, out + at.slots());
  check_launch("segment_tiles");
}

void forward(const SegmentTiles& op, const Forward<SegmentTiles>& f) {
  Scratch scratch(f.queue);
  cut_segments(scratch, pointer<int32_t>(f.in.segment_start), {f.in.segment_start.numel(), op.row_length}, op.row_length,
               pointer<int32_t>(f.out.tiles));
}

}  // namespace fairway::cuda
