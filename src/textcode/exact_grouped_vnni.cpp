// Eight vectors against a row of tiles with AVX-512 VNNI. Compiled with flags of its own (see CMakeLists.txt).
#include <immintrin.h>

#include <cstring>

#include "ops/cpu/isa/packed_kernels.h"
#include "textcode/grouped_rows.h"

namespace fairway::textcode {
namespace {

using cpu::PackedForm;

constexpr int kVector = 64;  // bytes: four columns of sixteen rows
constexpr int kOffset = 128;
constexpr int64_t kQuadBytes = int64_t{kGroupRows} * kPlaces * 4;  // digits of four columns: (kGroupRows, kPlaces, 4)

void arrange(const int8_t* const* digits, int64_t cols, int row, int8_t* group) {
  int8_t* to = group + row * kPlaces * 4;
  for (int64_t quad = 0; quad < cols / 4; ++quad, to += kQuadBytes)
    for (int place = 0; place < kPlaces; ++place) std::memcpy(to + 4 * place, digits[place] + 4 * quad, 4);
}

template <PackedForm kForm>
void unpack_tiles(const uint8_t* tiles, int64_t count, uint8_t* bytes) {
  constexpr auto kMore = static_cast<uint8_t>(kOffset - cpu::packed_offset(kForm));
  if constexpr (kForm == PackedForm::bytes) {
    std::memcpy(bytes, tiles, static_cast<size_t>(count * cpu::packed_tile_bytes(kForm)));
    return;
  }
  for (int64_t c = 0; c < count; ++c, tiles += cpu::packed_tile_bytes(kForm), bytes += 4 * kVector) {
    for (int pair = 0; pair < 2; ++pair)
      for (int i = 0; i < kVector; ++i) {
        const uint8_t both = tiles[pair * kVector + i], high = kForm == PackedForm::six ? tiles[2 * kVector + i] : 0;
        const auto low_high = static_cast<uint8_t>((high >> (4 * pair) & 3) << 4),
                   next_high = static_cast<uint8_t>((high >> (4 * pair + 2) & 3) << 4);
        bytes[2 * pair * kVector + i] = static_cast<uint8_t>(((both & 15) | low_high) + kMore);
        bytes[(2 * pair + 1) * kVector + i] = static_cast<uint8_t>((both >> 4 | next_high) + kMore);
      }
  }
}

// Weights plus 128, (columns / 4, 16, 4).
void unpack(const cpu::PackedRows& w, int64_t tile, uint8_t* bytes) {
  const int64_t count = w.col_tiles();
  const uint8_t* tiles = w.data + tile * count * cpu::packed_tile_bytes(w.form);
  if (w.form == PackedForm::six)
    unpack_tiles<PackedForm::six>(tiles, count, bytes);
  else if (w.form == PackedForm::bytes)
    unpack_tiles<PackedForm::bytes>(tiles, count, bytes);
  else
    unpack_tiles<PackedForm::nibbles>(tiles, count, bytes);
  if (w.outliers == nullptr) return;
  for (uint32_t o = tile == 0 ? 0 : w.outlier_end[tile - 1]; o < w.outlier_end[tile]; ++o) {
    const cpu::PackedOutlier& outlier = w.outliers[o];
    uint8_t& weight = bytes[outlier.col / 4 * kVector + outlier.row * 4 + outlier.col % 4];
    weight = static_cast<uint8_t>(weight + outlier.excess);
  }
}

__m512i digit(const int8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, 4);
  return _mm512_set1_epi32(four);
}

template <int kRows>
void sum_rows(const uint8_t* bytes, int64_t quads, const int8_t* digits, int32_t (*out)[kPlaces][16]) {
  __m512i sums[kRows][kPlaces] = {};
  for (int64_t quad = 0; quad < quads; ++quad, bytes += kVector, digits += kQuadBytes) {
    const __m512i weights = _mm512_load_si512(bytes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
      for (int place = 0; place < kPlaces; ++place)
        sums[r][place] = _mm512_dpbusd_epi32(sums[r][place], weights, digit(digits + (r * kPlaces + place) * 4));
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 3
    for (int place = 0; place < kPlaces; ++place) _mm512_store_si512(out[r][place], sums[r][place]);
}

void multiply(const cpu::PackedRows& w, int64_t tile, const uint8_t* bytes, const DigitGroup& group) {
  alignas(64) int32_t sums[kGroupRows][kPlaces][16];
  const int64_t quads = w.col_tiles() * 4, first = tile * cpu::kTileRows, left = w.rows - first, count = left < 16 ? left : 16;
  if (group.rows > 4)
    sum_rows<8>(bytes, quads, group.digits, sums);
  else if (group.rows > 2)
    sum_rows<4>(bytes, quads, group.digits, sums);
  else
    group.rows == 2 ? sum_rows<2>(bytes, quads, group.digits, sums) : sum_rows<1>(bytes, quads, group.digits, sums);
  for (int r = 0; r < group.rows; ++r) {
    const int32_t* own = group.sums + r * kPlaces;
    alignas(64) float y[16];
    for (int i = 0; i < 16; ++i) {
      const double low = sums[r][0][i] - kOffset * own[0], middle = sums[r][1][i] - kOffset * own[1],
                   high = sums[r][2][i] - kOffset * own[2];
      const double whole = high * 65536.0 + (middle * 256.0 + low);  // below 2^53: exact
      y[i] = static_cast<float>(whole * (static_cast<double>(w.scale[first + i]) * group.units[r]));
    }
    for (int64_t i = 0; i < count; ++i) group.y[r][first + i] = y[i];
  }
}

}  // namespace

constinit const GroupedKernels grouped_vnni{
    .most_cols = cpu::kMostPackedCols, .arrange = arrange, .unpack = unpack, .multiply = multiply};

}  // namespace fairway::textcode
