// Drawing the next token of each row: a block takes a row, each thread a run of neighbouring tokens. Weights and sums are
// double; the threads' sums are added one after another, so running sums never fall and exactly one token is found.
#include "ops/cuda/cuda.h"
#include "ops/cuda/elements.cuh"

namespace fairway::cuda {
namespace {

struct Draw {
  int64_t vocab, length, width, per_thread;  // width: of a row's window
  double temperature;
  float cap;
  const double* chances;
  const int32_t* position;
  int32_t *text, *window, *pick, *tokens;
};

template <class T>
__device__ double capped(const Source<T>& logits, int64_t i, float cap) {
  const float logit = logits[i];
  return static_cast<double>(sizeof(T) == 2 && cap > 0 ? cap * tanhf(logit / cap) : logit);
}

struct Best {
  double value;
  int64_t index;
};
__device__ inline Best better(const Best& a, const Best& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

// The likeliest token of the row, the first of equal ones.
template <class T>
__device__ Best likeliest(const Draw& d, const Source<T>& logits, int64_t row) {
  __shared__ Best best[kThreads];
  Best mine{-INFINITY, d.vocab - 1};
  for (int64_t i = threadIdx.x; i < d.vocab; i += kThreads) mine = better(mine, {capped(logits, row + i, d.cap), i});
  best[threadIdx.x] = mine;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) best[threadIdx.x] = better(best[threadIdx.x], best[threadIdx.x + half]);
  }
  __syncthreads();
  return best[0];
}

__device__ void place(const Draw& d, int64_t row, int64_t next, int32_t token) {
  d.text[row * d.length + next] = d.tokens[row] = token;
  int32_t* window = d.window + row * d.width;
  const int64_t at = next < d.width - 1 ? next : d.width - 1;
  if (next >= d.width)
    for (int64_t i = 0; i + 1 < d.width; ++i) window[i] = window[i + 1];
  window[at] = token;
  d.pick[row] = static_cast<int32_t>(row * d.width + at);
}

template <class T>
__global__ void draw(Draw d, Source<T> logits) {
  __shared__ double sums[kThreads];
  __shared__ double left;
  const int64_t next = *d.position + 1, row = blockIdx.x, first = row * d.vocab;
  if (next >= d.length) return;
  const Best top = likeliest(d, logits, first);
  if (d.temperature <= 0) {
    if (threadIdx.x == 0) place(d, row, next, static_cast<int32_t>(top.index));
    return;
  }
  const auto weight = [&](int64_t i) { return exp((capped(logits, first + i, d.cap) - top.value) / d.temperature); };
  const int64_t begin = threadIdx.x * d.per_thread, end = min(begin + d.per_thread, d.vocab);
  double mine = 0;
  for (int64_t i = begin; i < end; ++i) mine += weight(i);
  sums[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < kThreads; ++t) sums[t] += sums[t - 1];
    left = d.chances[row * d.length + next] * sums[kThreads - 1];
  }
  __syncthreads();
  const double before = threadIdx.x == 0 ? 0.0 : sums[threadIdx.x - 1];
  if (!(left >= before && left < sums[threadIdx.x])) return;
  int64_t token = begin;
  for (double rest = left - before - weight(begin); rest >= 0 && token + 1 < end; rest -= weight(token)) ++token;
  place(d, row, next, static_cast<int32_t>(token));
}

// After all rows: they read the old position.
__global__ void advance(int64_t length, int64_t width, const float* rope, float* angles, int32_t* position) {
  const int64_t next = *position + 1;
  __syncthreads();
  if (next < length)
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) angles[i] = rope[next * width + i];
  if (threadIdx.x == 0) *position = static_cast<int32_t>(next);
}

}  // namespace

void forward(const DrawTokens& op, const Forward<DrawTokens>& f) {
  Scratch scratch(f.queue);
  const int64_t rows = f.in.logits.rows(), vocab = f.in.logits.cols();
  const Draw d{vocab,
               f.in.text.cols(),
               f.in.window.numel() / rows,
               (vocab + kThreads - 1) / kThreads,
               op.temperature,
               static_cast<float>(op.cap),
               pointer<double>(f.in.chances),
               pointer<int32_t>(f.in.position),
               pointer<int32_t>(f.in.text),
               pointer<int32_t>(f.in.window),
               pointer<int32_t>(f.in.pick),
               pointer<int32_t>(f.in.tokens)};
  with_type(f.in.logits, false, [&]<class T, int V>() {
    draw<T><<<static_cast<unsigned>(rows), kThreads, 0, scratch.stream()>>>(d, source<T>(f.in.logits));
  });
  check_launch("draw_tokens");
  advance<<<1, 32, 0, scratch.stream()>>>(d.length, f.in.angles.numel(), pointer<float>(f.in.rope), pointer<float>(f.in.angles),
                                          pointer<int32_t>(f.in.position));
  check_launch("draw_tokens, position");
}

}  // namespace fairway::cuda
