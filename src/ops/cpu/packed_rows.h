// Quantized rows used as they are: y = s⊙(Q·x) for one vector x. Weights lie in tiles of 16 rows by 16 columns, so that a
// vector register holds four columns of sixteen rows, in 4, 6 or 8 bits each; of weights that nearly all fit into 4 bits the
// few that do not are listed beside the tiles. x is cut into three signed bytes of a fixed-point number with a unit of at most
// 2^-22 of its largest element; sums over integers are exact, so neither the order of summation nor the instruction set shows
// in the result, and rounding x is all the error there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fairway::cpu {

inline constexpr int64_t kTileRows = 16, kTileCols = 16;
inline constexpr int64_t kMostPackedCols = 1 << 15;  // 255·128·cols stays below 2^31

enum class PackedForm : uint8_t { nibbles, six, bytes };
PackedForm packed_form(int bits);  // the narrowest for integers of 2 to 8 bits

// What a weight has beyond the four bits in its tile.
struct PackedOutlier {
  uint16_t col = 0;
  uint8_t row = 0;  // of the tile
  int8_t excess = 0;
};

struct PackedRows {
  PackedForm form = PackedForm::bytes;
  int64_t rows = 0, cols = 0;
  const uint8_t* data = nullptr;            // tiles of a tile row side by side; aligned to 64 bytes
  const float* scale = nullptr;             // (rows, up to whole tiles)
  const PackedOutlier* outliers = nullptr;  // null: none
  const uint32_t* outlier_end = nullptr;    // (row tiles): those of a row of tiles end here

  int64_t row_tiles() const { return (rows + kTileRows - 1) / kTileRows; }
  int64_t col_tiles() const { return (cols + kTileCols - 1) / kTileCols; }
};
size_t packed_bytes(PackedForm form, int64_t rows, int64_t cols);

struct TileRange {
  int64_t begin = 0, end = 0;  // rows of tiles
};

// The whole matrix in as few bytes as its weights allow, in memory of packed_bytes(packed_form(bits), rows, cols) and aligned
// to
// 64. All but the scales of the result is set.
PackedRows pack_matrix(const int8_t* q, int64_t rows, int64_t cols, int bits, uint8_t* memory);
size_t bytes_read(const PackedRows& w);  // for a product, without the scales

// Writes a range of tile rows; q is the whole matrix (rows, cols), within the grid of the form.
void pack_rows(const PackedRows& to, const int8_t* q, TileRange range, uint8_t* data);
// One row as floats, scale·q.
void unpack_row(const PackedRows& from, int64_t row, float* out);

// A vector in digits: x ≈ unit·(65536·d2 + 256·d1 + d0). Filled anew for each vector; room for kMostPackedCols at most.
class alignas(64) DigitVector {  // one for each thread, on lines of its own
 public:
  explicit DigitVector(int64_t most_cols);
  // Of x⊙factor, or of x where that is null. Elements that are not finite make every product NaN.
  void assign(const float* x, int64_t cols, const float* factor = nullptr);

  double unit() const { return unit_; }
  const int8_t* digits(int place) const { return digits_.data() + place * stride_; }  // 0 is the lowest
  const int32_t* sums() const { return sums_; }

 private:
  int64_t stride_;
  double unit_ = 0;
  int32_t sums_[3] = {};
  std::vector<int8_t> digits_;
  std::vector<float> scaled_;
};

// y[row] of the rows in the range; y is the whole vector (rows).
void multiply(const PackedRows& w, const DigitVector& x, TileRange range, float* y);

}  // namespace fairway::cpu
