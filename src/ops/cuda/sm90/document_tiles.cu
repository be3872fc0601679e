#include "ops/cuda/sm90/document_tiles.cuh"

#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

constexpr int kAlone = sm90::kTile;  // rows of a document behind which the next one begins a tile
constexpr int kPlanners = 1024;      // threads of the block that counts
constexpr int kLengths = 256;        // runs of as many tiles or more are of one length for the order

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
    run = start[row] == row && (row % row_length == 0 || row - start[row - 1] >= kAlone);
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

struct Plan {
  DocumentTile* tiles;
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

__device__ int tiles_of(const Run* run) { return (run[1].row - run[0].row + kPair - 1) / kPair; }

// Numbers the runs' tiles, and places longer runs before shorter ones; gives the number of tiles.
__device__ int number_tiles(int count, Run* runs) {
  __shared__ int of_length[kLengths];
  for (int i = static_cast<int>(threadIdx.x); i < kLengths; i += kPlanners) of_length[i] = 0;
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
  __syncthreads();
  if (threadIdx.x < 32) {  // where each length begins: behind all that are longer
    int behind = 0;
    for (int i = kLengths - 1 - lane_id(); i >= 0; i -= 32) {
      const int own = of_length[i];
      int sum = own;
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(~0u, sum, step);
        if (lane_id() >= step) sum += other;
      }
      of_length[i] = behind + sum - own;
      behind += __shfl_sync(~0u, sum, 31);
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kPlanners) {
    const int own = tiles_of(runs + i);
    runs[i].place = atomicAdd(&of_length[min(own, kLengths) - 1], own);  // equals in any order
  }
  if (threadIdx.x == 0) runs[count].tile = done;
  __syncthreads();
  return done;
}

__global__ void __launch_bounds__(kPlanners)
    lay_out(int rows, const int32_t* start, const int* ends, const unsigned* begins, Plan plan) {
  const int runs = list_runs(rows, begins, plan.runs), count = number_tiles(runs, plan.runs);
  if (threadIdx.x == 0) *plan.count = count;
  for (int tile = static_cast<int>(threadIdx.x); tile < count; tile += kPlanners) {
    int low = 0, high = runs - 1;  // the last run that begins at or before the tile
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      plan.runs[middle].tile <= tile ? low = middle : high = middle - 1;
    }
    const Run run = plan.runs[low], next = plan.runs[low + 1];
    const int inside = tile - run.tile, first = run.row + inside * kPair, end = min(first + kPair, next.row);
    const int back = inside - (start[first] - run.row) / kPair, reach = (ends[end - 1] - 1 - run.row) / kPair - inside + 1;
    plan.tiles[tile] = {first, end, back, reach};
    plan.order[run.place + next.tile - 1 - tile] = tile;
  }
}

}  // namespace

DocumentTiles document_tiles(Scratch& scratch, const HeadShape& s) {
  if (s.start == nullptr) return {};
  // A run ends with a document of at least kAlone rows, or with a row of the batch.
  const int rows = s.length, most = rows / kAlone + rows / s.row_length + 1;
  Plan plan{scratch.take<DocumentTile>(most), scratch.take<int>(most), scratch.take<int>(1), scratch.take<Run>(most + 1)};
  int* ends = scratch.take<int>(rows);
  auto* begins = scratch.take<unsigned>((rows + 31) / 32);
  mark_runs<<<(rows + kThreads - 1) / kThreads, kThreads, 0, scratch.stream()>>>(rows, s.row_length, s.start, ends, begins);
  lay_out<<<1, kPlanners, 0, scratch.stream()>>>(rows, s.start, ends, begins, plan);
  check_launch("tiles of documents");
  return {plan.tiles, plan.order, plan.count, ends, most};
}

}  // namespace fairway::cuda
