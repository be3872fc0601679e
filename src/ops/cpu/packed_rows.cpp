#include "ops/cpu/packed_rows.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "ops/cpu/isa/kernels.h"
#include "ops/cpu/isa/packed_kernels.h"

namespace fairway::cpu {
namespace {

constexpr int kVector = 64;  // bytes: four columns of sixteen rows

// The table follows the choice of instruction set made for all kernels; AVX-512 without VNNI does better with 256 bits.
const PackedKernels& packed_kernels() {
  const std::string_view isa = kernels().name;
  if (isa == "generic") return packed_generic;
#if defined(__x86_64__)
  return isa == "avx512" && __builtin_cpu_supports("avx512vnni") ? packed_vnni : packed_avx2;
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 ? packed_dot : packed_neon;
#else
  return packed_generic;
#endif
}

// Four vectors of unsigned weights to the bytes of a tile, and the place of one weight in it.
void join(PackedForm form, const uint8_t (&v)[4][kVector], uint8_t* tile) {
  if (form == PackedForm::bytes) {
    std::memcpy(tile, v, sizeof v);
    return;
  }
  for (int i = 0; i < kVector; ++i) {
    tile[i] = static_cast<uint8_t>((v[0][i] & 15) | v[1][i] << 4);
    tile[kVector + i] = static_cast<uint8_t>((v[2][i] & 15) | v[3][i] << 4);
  }
  if (form == PackedForm::nibbles) return;
  for (int i = 0; i < kVector; ++i)
    tile[2 * kVector + i] = static_cast<uint8_t>(v[0][i] >> 4 | v[1][i] >> 4 << 2 | v[2][i] >> 4 << 4 | v[3][i] >> 4 << 6);
}

// A whole tile of q into four vectors: 16 weights of a row are one word of each.
void gather_tile(const int8_t* q, int64_t cols, uint8_t offset, uint8_t (&v)[4][kVector]) {
  for (int i = 0; i < kTileRows; ++i) {
    uint32_t words[4];
    std::memcpy(words, q + i * cols, sizeof words);
    for (int quad = 0; quad < 4; ++quad) std::memcpy(v[quad] + 4 * i, &words[quad], 4);
  }
  for (auto& own : v)
    for (uint8_t& weight : own) weight = static_cast<uint8_t>(weight + offset);
}

int weight_in(PackedForm form, const uint8_t* tile, int quad, int place) {
  if (form == PackedForm::bytes) return tile[quad * kVector + place] - packed_offset(form);
  const int low = tile[quad / 2 * kVector + place] >> (quad % 2 * 4) & 15;
  const int high = form == PackedForm::six ? tile[2 * kVector + place] >> (2 * quad) & 3 : 0;
  return (high << 4 | low) - packed_offset(form);
}

}  // namespace

PackedForm packed_form(int bits) {
  FAIRWAY_ASSERT(bits >= 2 && bits <= 8, "rows of 2 to 8 bits can be packed");
  if (bits <= 4) return PackedForm::nibbles;
  return bits <= 6 ? PackedForm::six : PackedForm::bytes;
}

size_t packed_bytes(PackedForm form, int64_t rows, int64_t cols) {
  const PackedRows shape{.form = form, .rows = rows, .cols = cols};
  return static_cast<size_t>(shape.row_tiles() * shape.col_tiles() * packed_tile_bytes(form));
}

// Of weights beyond the form's range only the low bits are kept.
void pack_rows(const PackedRows& to, const int8_t* q, TileRange range, uint8_t* data) {
  const int64_t tile_bytes = packed_tile_bytes(to.form), cols = to.cols;
  const auto offset = static_cast<uint8_t>(packed_offset(to.form));
  for (int64_t r = range.begin; r < range.end; ++r) {
    const int64_t rows = std::min(kTileRows, to.rows - r * kTileRows);
    for (int64_t c = 0; c < to.col_tiles(); ++c) {
      const int64_t width = std::min(kTileCols, cols - c * kTileCols);
      alignas(64) uint8_t v[4][kVector];
      uint8_t* tile = data + (r * to.col_tiles() + c) * tile_bytes;
      if (rows == kTileRows && width == kTileCols) {
        gather_tile(q + r * kTileRows * cols + c * kTileCols, cols, offset, v);
        join(to.form, v, tile);
        continue;
      }
      std::memset(v, 0, sizeof v);  // beyond the matrix: of no account, the digits there are zero
      for (int64_t i = 0; i < rows; ++i) {
        alignas(16) uint8_t row[kTileCols] = {};
        std::memcpy(row, q + (r * kTileRows + i) * cols + c * kTileCols, static_cast<size_t>(width));
        for (uint8_t& weight : row) weight = static_cast<uint8_t>(weight + offset);
        for (int quad = 0; quad < 4; ++quad) std::memcpy(v[quad] + 4 * i, row + 4 * quad, 4);
      }
      join(to.form, v, tile);
    }
  }
}

namespace {

// Four bits of each weight and a list of what is beyond them. Gives up when the list grows too long to be worth it.
class OutlierPacking {
 public:
  OutlierPacking(const int8_t* q, int64_t rows, int64_t cols, uint8_t* memory)
      : q_(q), to_{.form = PackedForm::nibbles, .rows = rows, .cols = cols, .data = memory}, memory_(memory) {}

  bool run() {
    const size_t most = static_cast<size_t>(to_.rows * to_.cols) / kWeightsPerOutlier;
    for (int64_t r = 0; r < to_.row_tiles(); ++r) {
      for (int64_t i = r * kTileRows; i < std::min(to_.rows, (r + 1) * kTileRows); ++i) scan(q_ + i * to_.cols, i % kTileRows);
      ends_.push_back(static_cast<uint32_t>(outliers_.size()));
      if (outliers_.size() > most) return false;
    }
    return true;
  }
  size_t list_bytes() const { return ends_.size() * sizeof(uint32_t) + outliers_.size() * sizeof(PackedOutlier); }
  PackedRows write() {
    pack_rows(to_, q_, {0, to_.row_tiles()}, memory_);
    uint8_t* place = memory_ + packed_bytes(to_.form, to_.rows, to_.cols);
    std::memcpy(place, ends_.data(), ends_.size() * sizeof(uint32_t));
    to_.outlier_end = reinterpret_cast<const uint32_t*>(place);
    place += ends_.size() * sizeof(uint32_t);
    if (!outliers_.empty()) std::memcpy(place, outliers_.data(), outliers_.size() * sizeof(PackedOutlier));
    to_.outliers = outliers_.empty() ? nullptr : reinterpret_cast<const PackedOutlier*>(place);
    return to_;
  }

 private:
  // Reading an outlier costs as much as some fifty weights, of which a third of the bytes is saved.
  static constexpr size_t kWeightsPerOutlier = 100;

  void scan(const int8_t* row, int64_t index) {
    constexpr int64_t kWord = 8;
    int64_t j = 0;
    for (; j + kWord <= to_.cols; j += kWord) {  // a byte of q + 8 has high bits where q does not fit
      uint64_t word;
      std::memcpy(&word, row + j, sizeof word);
      const uint64_t moved = (word & 0x7F7F7F7F7F7F7F7FU) + 0x0808080808080808U;  // bytes do not touch; the sign apart
      if (((moved ^ (word & 0x8080808080808080U)) & 0xF0F0F0F0F0F0F0F0U) == 0) continue;
      for (int64_t k = j; k < j + kWord; ++k) note(row[k], k, index);
    }
    for (; j < to_.cols; ++j) note(row[j], j, index);
  }
  void note(int8_t value, int64_t col, int64_t index) {
    const int excess = value - (((value + 8) & 15) - 8);
    if (excess != 0)
      outliers_.push_back({static_cast<uint16_t>(col), static_cast<uint8_t>(index), static_cast<int8_t>(excess)});
  }

  const int8_t* q_;
  PackedRows to_;
  uint8_t* memory_;
  std::vector<PackedOutlier> outliers_;
  std::vector<uint32_t> ends_;
};

}  // namespace

PackedRows pack_matrix(const int8_t* q, int64_t rows, int64_t cols, int bits, uint8_t* memory) {
  const PackedForm form = packed_form(bits);
  const size_t room = packed_bytes(form, rows, cols);
  if (form == PackedForm::six) {
    OutlierPacking narrow(q, rows, cols, memory);
    if (narrow.run() && packed_bytes(PackedForm::nibbles, rows, cols) + narrow.list_bytes() <= room) return narrow.write();
  }
  const PackedRows out{.form = form, .rows = rows, .cols = cols, .data = memory};
  pack_rows(out, q, {0, out.row_tiles()}, memory);
  return out;
}

size_t bytes_read(const PackedRows& w) {
  size_t bytes = packed_bytes(w.form, w.rows, w.cols);
  if (w.outliers != nullptr)
    bytes += static_cast<size_t>(w.row_tiles()) * sizeof(uint32_t) + w.outlier_end[w.row_tiles() - 1] * sizeof(PackedOutlier);
  return bytes;
}

void unpack_row(const PackedRows& from, int64_t row, float* out) {
  const uint8_t* tile = from.data + row / kTileRows * from.col_tiles() * packed_tile_bytes(from.form);
  const int place = static_cast<int>(row % kTileRows) * 4;
  for (int64_t j = 0; j < from.cols; ++j) {
    const uint8_t* own = tile + j / kTileCols * packed_tile_bytes(from.form);
    const auto within = static_cast<int>(j % kTileCols);
    out[j] = from.scale[row] * static_cast<float>(weight_in(from.form, own, within / 4, place + within % 4));
  }
  if (from.outliers == nullptr) return;
  const int64_t tile_row = row / kTileRows;
  for (uint32_t o = tile_row == 0 ? 0 : from.outlier_end[tile_row - 1]; o < from.outlier_end[tile_row]; ++o) {
    const PackedOutlier& outlier = from.outliers[o];
    if (outlier.row != row % kTileRows) continue;
    const uint8_t* own = tile + outlier.col / kTileCols * packed_tile_bytes(from.form);
    const int within = outlier.col % kTileCols;
    const int whole = weight_in(from.form, own, within / 4, place + within % 4) + outlier.excess;
    out[outlier.col] = from.scale[row] * static_cast<float>(whole);
  }
}

DigitVector::DigitVector(int64_t most_cols)
    : stride_((most_cols + kVector - 1) / kVector * kVector), digits_(static_cast<size_t>(3 * stride_)) {
  FAIRWAY_ASSERT(most_cols <= kMostPackedCols, "a packed row is too long for 32-bit sums");
}

void DigitVector::assign(const float* x, int64_t cols, const float* factor) {
  FAIRWAY_ASSERT(cols <= stride_, "a vector longer than there is room for");
  if (factor != nullptr) {
    scaled_.resize(static_cast<size_t>(cols));
    for (int64_t j = 0; j < cols; ++j) scaled_[static_cast<size_t>(j)] = x[j] * factor[j];
    x = scaled_.data();
  }
  const PackedKernels& kernel = packed_kernels();
  const uint32_t bits = kernel.largest(x, cols);  // of |x|, as floats are ordered like integers
  float largest;
  std::memcpy(&largest, &bits, 4);
  int exponent = 0;
  std::frexp(largest, &exponent);                   // largest < 2^exponent
  int shift = 23 - std::clamp(exponent, -80, 200);  // x·2^shift below 2^23
  constexpr float kMostFixed = 127 * 65536 + 127 * 256 + 127;
  if (std::ldexp(largest, shift) > kMostFixed - 1) --shift;
  const bool finite = bits < 0x7F800000U;
  unit_ = finite ? std::ldexp(1.0, -shift) : std::nan("");
  kernel.digits({.x = x,
                 .cols = finite ? cols : 0,
                 .factor = std::ldexp(1.0F, shift),
                 .padded = (cols + kTileCols - 1) / kTileCols * kTileCols,
                 .low = digits_.data(),
                 .middle = digits_.data() + stride_,
                 .high = digits_.data() + 2 * stride_,
                 .sums = sums_});
}

void multiply(const PackedRows& w, const DigitVector& x, TileRange range, float* y) {
  packed_kernels().multiply(
      {.w = w, .digits = {x.digits(0), x.digits(1), x.digits(2)}, .sums = x.sums(), .unit = x.unit(), .range = range, .y = y});
}

}  // namespace fairway::cpu
