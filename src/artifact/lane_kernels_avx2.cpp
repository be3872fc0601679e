// Two vectors of eight states. Whole groups only, and only while the words cannot run out; the rest goes to the generic loops.
#include <immintrin.h>

#include "artifact/lane_kernels.h"
#include "base/trellis.h"

namespace fairway {
namespace {

// Where each state that wants a word finds it among the next eight, for every set of states that want one.
struct WordPlaces {
  alignas(64) uint8_t at[256][8];
  constexpr WordPlaces() : at() {
    for (int wanting = 0; wanting < 256; ++wanting) {
      uint8_t next = 0;
      for (int lane = 0; lane < 8; ++lane) at[wanting][lane] = (wanting >> lane & 1) != 0 ? next++ : 0;
    }
  }
};
constexpr WordPlaces kPlaces;

template <bool trellis>
inline __m256i look_up(const uint32_t* entries, __m256i x, __m256i row_class, __m256i column, __m256i last, __m256i state) {
  __m256i index = _mm256_min_epi32(_mm256_max_epi32(_mm256_add_epi32(row_class, column), _mm256_setzero_si256()), last);
  if (trellis) index = _mm256_or_si256(_mm256_slli_epi32(index, 1), _mm256_and_si256(state, _mm256_set1_epi32(1)));
  const __m256i slot = _mm256_and_si256(x, _mm256_set1_epi32(2047));
  alignas(32) uint32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_or_si256(_mm256_slli_epi32(index, 11), slot));
  const auto pair = [&](int i) {
    return static_cast<long long>(entries[at[i]] | static_cast<uint64_t>(entries[at[i + 1]]) << 32);
  };
  return _mm256_set_epi64x(pair(6), pair(4), pair(2), pair(0));
}

inline __m256i advance(__m256i x, __m256i entry, const char*& place) {
  const __m256i freq = _mm256_and_si256(_mm256_srli_epi32(entry, 8), _mm256_set1_epi32(0xFFF));
  x = _mm256_add_epi32(_mm256_mullo_epi32(freq, _mm256_srli_epi32(x, 11)), _mm256_srli_epi32(entry, 20));
  const __m256i low = _mm256_cmpeq_epi32(_mm256_srli_epi32(x, 16), _mm256_setzero_si256());
  const auto wanting = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(low)));
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
  const __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kPlaces.at[wanting])));
  const __m256i filled = _mm256_or_si256(_mm256_slli_epi32(x, 16), _mm256_permutevar8x32_epi32(words, order));
  place += 2 * __builtin_popcount(wanting);
  return _mm256_blendv_epi8(x, filled, low);
}

inline __m256i load(const int32_t* from) { return _mm256_load_si256(reinterpret_cast<const __m256i*>(from)); }

inline __m256i moved_on(__m256i state, __m256i entry) {  // next_trellis_state()
  static_assert(kTrellisInput == 4);
  const __m256i odd = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_and_si256(state, _mm256_set1_epi32(1)));
  const __m256i input = _mm256_slli_epi32(_mm256_and_si256(entry, _mm256_set1_epi32(2)), 1);
  const __m256i fed = _mm256_xor_si256(_mm256_srli_epi32(state, 1), _mm256_and_si256(odd, _mm256_set1_epi32(kTrellisFeedback)));
  return _mm256_xor_si256(fed, input);
}

template <bool trellis>
bool decode_whole(LaneStates& states, LaneGroup& group) {
  auto* stored = reinterpret_cast<__m256i*>(states.x);
  __m256i a = _mm256_loadu_si256(stored), b = _mm256_loadu_si256(stored + 1);
  const __m256i rows_a = load(group.row_class), rows_b = load(group.row_class + 8), last = _mm256_set1_epi32(group.last);
  __m256i state_a = load(group.trellis_state), state_b = load(group.trellis_state + 8);
  const char* place = states.place;
  __m128i escaped = _mm_setzero_si128();
  for (int j = 0; j < group.count; ++j) {
    const __m256i column = _mm256_set1_epi32(group.columns[j]);
    const __m256i entry_a = look_up<trellis>(group.entries, a, rows_a, column, last, state_a);
    const __m256i entry_b = look_up<trellis>(group.entries, b, rows_b, column, last, state_b);
    a = advance(a, entry_a, place);
    b = advance(b, entry_b, place);
    if (trellis) state_a = moved_on(state_a, entry_a), state_b = moved_on(state_b, entry_b);
    const __m256i low_a = _mm256_srai_epi32(_mm256_slli_epi32(entry_a, 24), 24);
    const __m256i low_b = _mm256_srai_epi32(_mm256_slli_epi32(entry_b, 24), 24);
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low_a, low_b), 0xD8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    escaped = _mm_or_si128(escaped, _mm_cmplt_epi8(bytes, _mm_set1_epi8(trellis ? -kTrellisLevel : -127)));
    _mm_store_si128(reinterpret_cast<__m128i*>(group.tile[j]), bytes);
  }
  _mm256_storeu_si256(stored, a);
  _mm256_storeu_si256(stored + 1, b);
  _mm256_store_si256(reinterpret_cast<__m256i*>(group.trellis_state), state_a);
  _mm256_store_si256(reinterpret_cast<__m256i*>(group.trellis_state + 8), state_b);
  states.place = place;
  return _mm_movemask_epi8(escaped) != 0;
}

bool decode(LaneStates& states, LaneGroup& group) {
  constexpr int64_t kMostBytes = 16 * 32 + 16;
  if (group.rows != 16 || states.end - states.place < kMostBytes) return generic_lanes.decode(states, group);
  return group.trellis ? decode_whole<true>(states, group) : decode_whole<false>(states, group);
}

// Four rounds of interleaving: row i of the result is column i of the tile.
inline void transpose(__m128i (&v)[16]) {
  for (int round = 0; round < 4; ++round) {
    __m128i w[16];
    for (int i = 0; i < 8; ++i) {
      w[2 * i] = _mm_unpacklo_epi8(v[i], v[i + 8]);
      w[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + 8]);
    }
    for (int i = 0; i < 16; ++i) v[i] = w[i];
  }
}

inline __m256i row_classes(__m256i squares, const LaneRowLimits& next) {
  __m256i distance = _mm256_sub_epi32(squares, _mm256_set1_epi32(next.expected));
  distance = _mm256_sign_epi32(distance, _mm256_set1_epi32(next.sign));
  __m256i index = _mm256_set1_epi32(6);
  for (int k = 0; k < 12; ++k)  // limits not reached count down
    index = _mm256_add_epi32(index, _mm256_cmpgt_epi32(_mm256_set1_epi32(next.limits[k]), distance));
  return index;
}

void finish(LaneGroup& group, const LaneRowLimits& next, int8_t* q, int64_t stride) {
  if (group.rows != 16 || group.count != 16) return generic_lanes.finish(group, next, q, stride);
  __m128i v[16];
  for (int j = 0; j < 16; ++j) v[j] = _mm_load_si128(reinterpret_cast<const __m128i*>(group.tile[j]));
  if (next.sign != 0) {
    __m256i low = load(group.squares), high = load(group.squares + 8);
    for (int j = 0; j < 16; j += 2) {
      const __m256i first = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(v[j], v[j + 1]));
      const __m256i second = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(v[j], v[j + 1]));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(first, first));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(second, second));
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(group.squares), low);
    _mm256_store_si256(reinterpret_cast<__m256i*>(group.squares + 8), high);
    _mm256_store_si256(reinterpret_cast<__m256i*>(group.row_class), row_classes(low, next));
    _mm256_store_si256(reinterpret_cast<__m256i*>(group.row_class + 8), row_classes(high, next));
  }
  transpose(v);
  for (int r = 0; r < 16; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(q + r * stride), v[r]);
}

}  // namespace

extern const LaneKernels avx2_lanes;
const LaneKernels avx2_lanes{decode, finish};

}  // namespace fairway
