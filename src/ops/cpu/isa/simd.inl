// Vectors of kLanes floats by GCC's vector extensions; included inside a namespace of its own by each instruction set.
// Nothing here may use the standard library: an inline function shared with other units could be linked in with AVX-512 code.

#define FAIRWAY_INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * kLanes)));
typedef int32_t ivec __attribute__((vector_size(4 * kLanes)));
typedef float unaligned_vec __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

FAIRWAY_INLINE vec load(const float* p) { return *reinterpret_cast<const unaligned_vec*>(p); }
FAIRWAY_INLINE void store(float* p, vec v) { *reinterpret_cast<unaligned_vec*>(p) = v; }
// Past the caches, to an address aligned to the vector: for results too large to be found there again.
FAIRWAY_INLINE void store_past_caches(float* p, vec v) {
#if defined(__AVX512F__)
  __builtin_ia32_movntps512(p, v);
#elif defined(__AVX2__)
  __builtin_ia32_movntps256(p, v);
#else
  store(p, v);
#endif
}
FAIRWAY_INLINE void end_stores_past_caches() {
#if defined(__AVX2__)
  __builtin_ia32_sfence();
#endif
}
// x - 0 is x for every x, so this is one broadcast; x + 0 would not keep -0 and costs an addition.
FAIRWAY_INLINE vec splat(float x) { return x - vec{}; }
FAIRWAY_INLINE vec select(ivec mask, vec yes, vec no) { return mask ? yes : no; }
FAIRWAY_INLINE vec vmax(vec a, vec b) { return a > b ? a : b; }

FAIRWAY_INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

FAIRWAY_INLINE vec load_first(const float* p, int64_t count) {
  if (count >= kLanes) return load(p);
  vec v{};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
FAIRWAY_INLINE void store_first(float* p, vec v, int64_t count) {
  if (count >= kLanes) return store(p, v);
  for (int64_t i = 0; i < count; ++i) p[i] = v[i];
}

FAIRWAY_INLINE float sum_lanes(vec v) {
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += v[i];
  return sum;
}

// acc[i][j] += sum over p of A(i, p) * B(p, j). A(i, p) is a[i * stride + p] by rows, a[p * stride + i] by columns.
// With kAhead, one line per step from `ahead` on is fetched into the second cache meanwhile.
template <int kRows, int kVecs, bool kByColumn, bool kAhead = false>
FAIRWAY_INLINE void accumulate(vec (&acc)[kRows][kVecs], int64_t k, const float* a, int64_t stride, const float* b, int64_t ldb,
                               const float* ahead = nullptr) {
  for (int64_t p = 0; p < k; ++p) {
    vec right[kVecs];
#pragma GCC unroll 16
    for (int j = 0; j < kVecs; ++j) right[j] = load(b + j * kLanes);
    if (kAhead) __builtin_prefetch(ahead + p * 16, 0, 2);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const vec left = splat(kByColumn ? a[i] : a[i * stride]);
#pragma GCC unroll 16
      for (int j = 0; j < kVecs; ++j) acc[i][j] += left * right[j];
    }
    a += kByColumn ? stride : 1;
    b += ldb;
  }
}
