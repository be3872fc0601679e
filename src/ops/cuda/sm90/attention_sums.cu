#include "ops/cuda/sm90/attention_sums.cuh"

#include "ops/cuda/heads.cuh"

namespace fairway::cuda {
namespace {

using sm90::kTile;

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

// Eight lanes a query and head.
__global__ void round_kernel(HeadStatistics slots, unsigned lines, const float* sums, float factor, Places dq) {
  const unsigned lane = threadIdx.x % kPieces;
  for (auto line = static_cast<unsigned>(first_group<kPieces>()); line < lines;
       line += static_cast<unsigned>(group_stride<kPieces>())) {  // of (B, H, T)
    const unsigned block = slots.length.quotient(line), place = line - block * slots.length.value;
    const unsigned at = slots.slot != nullptr ? static_cast<unsigned>(slots.slot[place]) : place;
    float x[kPiece];
    Source<float>{sums}.load((int64_t{block * slots.slots + at} * kPieces + lane) * kPiece, x);
#pragma unroll
    for (float& v : x) v *= factor;
    const unsigned sequence = slots.heads.quotient(block), head = block - sequence * slots.heads.value;
    const int64_t row = int64_t{sequence} * slots.length.value + place;
    dq.sink.store(row * dq.pitch + head * kTile + (lane ^ (at % 8)) * kPiece, x);
  }
}

}  // namespace

HeadStatistics head_statistics(Scratch& scratch, const HeadShape& s, const DocumentTiles& documents, const Tensor& lse) {
  const bool packed = documents.tiles != nullptr;
  const int slots = packed ? documents.most * kPair : s.length;
  return {scratch.take<PairStatistics>(lse.numel() / s.length * slots / 2),
          pointer<float>(lse),
          Divisor(s.heads),
          Divisor(s.length),
          documents.slots,
          static_cast<unsigned>(slots)};
}

void gather_statistics(Scratch& scratch, const HeadStatistics& statistics, const Tensor& a, const Tensor& b) {
  const int64_t items = a.numel() / kTile;
  gather_kernel<<<blocks_for(scratch.context(), items, kThreads / 8), kThreads, 0, scratch.stream()>>>(
      static_cast<unsigned>(items), pointer<bf16>(a), pointer<bf16>(b), statistics);
}

void round_sums(Scratch& scratch, const HeadShape& s, const HeadStatistics& slots, const Sums& sums, const Tensor& dq) {
  const int64_t lines = dq.rows() * s.heads;
  round_kernel<<<blocks_for(scratch.context(), lines, kThreads / kPieces), kThreads, 0, scratch.stream()>>>(
      slots, static_cast<unsigned>(lines), sums.tiles->at, s.scale, places(dq));
}

}  // namespace fairway::cuda
