#include "ops/cuda/sm90/attention_sums.cuh"

#include "ops/cuda/heads.cuh"

namespace fairway::cuda {
namespace {

using sm90::kTile;

// How 32-bit numbers of queries split; suits_attention_tiles keeps them below 2³¹.
struct Split {
  Divisor heads, length;
};

// Eight lanes a query and head.
__global__ void gather_kernel(unsigned items, const bf16* a, const bf16* b, HeadStatistics to) {
  constexpr int kLanes = 8, kEach = 8;
  const unsigned lane = threadIdx.x % kLanes;
  for (auto item = static_cast<unsigned>(first_group<kLanes>()); item < items;
       item += static_cast<unsigned>(group_stride<kLanes>())) {
    float x[kEach], y[kEach], along = 0;
    Source<bf16>{a}.load(int64_t{item} * kTile + lane * kEach, x);
    Source<bf16>{b}.load(int64_t{item} * kTile + lane * kEach, y);
#pragma unroll
    for (int k = 0; k < kEach; ++k) along += x[k] * y[k];
    along = group_sum<kLanes>(along);
    const unsigned row = to.heads.quotient(item);
    if (lane == 0) to.put(row, item - row * to.heads.value, along);
  }
}

// The first row behind `row` whose document begins behind it.
__global__ void find_ends(int rows, const int32_t* start, int* ends) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= rows) return;
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
  ends[row] = low;
}

// Eight lanes a row of a tile.
__global__ void round_kernel(Split split, unsigned lines, const float* sums, float factor, Places dq) {
  const unsigned lane = threadIdx.x % kPieces;
  for (auto line = static_cast<unsigned>(first_group<kPieces>()); line < lines;
       line += static_cast<unsigned>(group_stride<kPieces>())) {  // of (B, H, T)
    float x[kPiece];
    Source<float>{sums}.load((int64_t{line} * kPieces + lane) * kPiece, x);
#pragma unroll
    for (float& v : x) v *= factor;
    const unsigned block = split.length.quotient(line), place = line - block * split.length.value;
    const unsigned sequence = split.heads.quotient(block), head = block - sequence * split.heads.value;
    const int64_t row = int64_t{sequence} * split.length.value + place;
    dq.sink.store(row * dq.pitch + head * kTile + (lane ^ (place % 8)) * kPiece, x);
  }
}

}  // namespace

HeadStatistics head_statistics(Scratch& scratch, const HeadShape& s, const Tensor& lse) {
  return {scratch.take<PairStatistics>(lse.numel() / 2), pointer<float>(lse), Divisor(s.heads), Divisor(s.length)};
}

void gather_statistics(Scratch& scratch, const HeadStatistics& statistics, const Tensor& a, const Tensor& b) {
  const int64_t items = a.numel() / kTile;
  gather_kernel<<<blocks_for(scratch.context(), items, kThreads / 8), kThreads, 0, scratch.stream()>>>(
      static_cast<unsigned>(items), pointer<bf16>(a), pointer<bf16>(b), statistics);
}

const int* document_ends(Scratch& scratch, const HeadShape& s) {
  if (s.start == nullptr) return nullptr;
  int* ends = scratch.take<int>(s.length);
  find_ends<<<(s.length + kThreads - 1) / kThreads, kThreads, 0, scratch.stream()>>>(s.length, s.start, ends);
  return ends;
}

void round_sums(Scratch& scratch, const HeadShape& s, const Sums& sums, const Tensor& dq) {
  const int64_t lines = dq.rows() * s.heads;
  round_kernel<<<blocks_for(scratch.context(), lines, kThreads / kPieces), kThreads, 0, scratch.stream()>>>(
      {Divisor(s.heads), Divisor(s.length)}, static_cast<unsigned>(lines), sums.tiles->at, s.scale, places(dq));
}

}  // namespace fairway::cuda
