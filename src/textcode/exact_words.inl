// Included inside a namespace of its own by each instruction set. Words: sixteen pairs of numbers of 16 bits. PairSums::add()
// multiplies each with the pair given and adds both products to one of sixteen sums, which begin with {}: a constructor would
// keep arrays of them out of registers. kAtOnce: how many of the two together,
// for each of two heads, the registers hold. FAIRWAY_PLAIN_WORDS: as machines do that are neither x86-64 nor Arm, for a
// test.

constexpr int kWide = 16;
using Wide = float __attribute__((vector_size(64)));
using WideInt = int32_t __attribute__((vector_size(64)));
using WideBits = uint32_t __attribute__((vector_size(64)));

static inline uint32_t pair_at(const int16_t* p) {
  uint32_t out;
  __builtin_memcpy(&out, p, sizeof out);
  return out;
}

#if defined(__AVX512BW__)
constexpr int kAtOnce = 4;
using Words = __m512i;
static inline Words load_words(const int16_t* p) { return _mm512_loadu_si512(p); }
struct PairSums {
  __m512i sums;
  void add(Words words, uint32_t pair) {
    const __m512i both = _mm512_set1_epi32(static_cast<int>(pair));
#if defined(__AVX512VNNI__)
    sums = _mm512_dpwssd_epi32(sums, words, both);
#else
    sums = _mm512_add_epi32(sums, _mm512_madd_epi16(words, both));
#endif
  }
  void store(int32_t* to) const { _mm512_storeu_si512(to, sums); }
};
#elif defined(__AVX2__)
constexpr int kAtOnce = 2;
struct Words {
  __m256i first, second;
};
static inline Words load_words(const int16_t* p) {
  const auto* at = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
}
struct PairSums {
  __m256i first, second;
  void add(const Words& words, uint32_t pair) {
    const __m256i both = _mm256_set1_epi32(static_cast<int>(pair));
    first = _mm256_add_epi32(first, _mm256_madd_epi16(words.first, both));
    second = _mm256_add_epi32(second, _mm256_madd_epi16(words.second, both));
  }
  void store(int32_t* to) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8), second);
  }
};
#elif defined(__SSE2__) && !defined(FAIRWAY_PLAIN_WORDS)  // every x86-64
constexpr int kAtOnce = 1;
struct Words {
  __m128i part[4];
};
static inline Words load_words(const int16_t* p) {
  const auto* at = reinterpret_cast<const __m128i*>(p);
  return {{_mm_loadu_si128(at), _mm_loadu_si128(at + 1), _mm_loadu_si128(at + 2), _mm_loadu_si128(at + 3)}};
}
struct PairSums {
  __m128i part[4];
  void add(const Words& words, uint32_t pair) {
    const __m128i both = _mm_set1_epi32(static_cast<int>(pair));
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) part[i] = _mm_add_epi32(part[i], _mm_madd_epi16(words.part[i], both));
  }
  void store(int32_t* to) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 4 * i), part[i]);
  }
};
#elif defined(__ARM_NEON) && !defined(FAIRWAY_PLAIN_WORDS)  // every 64-bit Arm
constexpr int kAtOnce = 2;
struct Words {
  int16x8x2_t part[2];  // the first of eight pairs, and the second
};
static inline Words load_words(const int16_t* p) { return {{vld2q_s16(p), vld2q_s16(p + 16)}}; }
struct PairSums {
  int32x4_t part[4];
  void add(const Words& words, uint32_t pair) {
    const int16x4_t both = vreinterpret_s16_u32(vdup_n_u32(pair));
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const int16x8_t first = words.part[i].val[0], second = words.part[i].val[1];
      part[2 * i] = vmlal_lane_s16(part[2 * i], vget_low_s16(first), both, 0);
      part[2 * i] = vmlal_lane_s16(part[2 * i], vget_low_s16(second), both, 1);
      part[2 * i + 1] = vmlal_high_lane_s16(part[2 * i + 1], first, both, 0);
      part[2 * i + 1] = vmlal_high_lane_s16(part[2 * i + 1], second, both, 1);
    }
  }
  void store(int32_t* to) const {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) vst1q_s32(to + 4 * i, part[i]);
  }
};
#else
constexpr int kAtOnce = 1;
using Words = WideInt;
using LooseInt = int32_t __attribute__((vector_size(64), aligned(2), may_alias));
static inline Words load_words(const int16_t* p) { return *reinterpret_cast<const LooseInt*>(p); }
struct PairSums {
  WideInt sums;
  void add(Words words, uint32_t pair) {
    const WideInt low = std::bit_cast<WideInt>(std::bit_cast<WideBits>(words) << 16) >> 16;
    sums += low * int32_t{static_cast<int16_t>(pair)} + (words >> 16) * int32_t{static_cast<int16_t>(pair >> 16)};
  }
  void store(int32_t* to) const { __builtin_memcpy(to, &sums, sizeof sums); }
};
#endif

static inline Wide floats(const PairSums& sums) {
  WideInt whole;
  sums.store(reinterpret_cast<int32_t*>(&whole));
  return __builtin_convertvector(whole, Wide);
}
