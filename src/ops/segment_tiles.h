// Packed documents cut into tiles of at most 128 rows, so that attention's work follows the pairs inside of documents. A tile
// begins where a row of the batch does, where a document begins behind one of at least 64 tokens, and 128 rows after the tile
// before. So a long document begins its own tiles (at any other place it would meet one more of them), and short ones share.
// Only what lies before a row says where its tile begins: a score does not depend on later text, nor on other rows.
// Tiles that follow each other without such a beginning are a run; attention takes longer runs first.
#pragma once

#include "ops/op.h"

namespace fairway {

struct SegmentTiles {
  static constexpr std::string_view name = "segment_tiles";
  static constexpr bool differentiable = false;
  int64_t row_length = 0;  // T
  template <class T>
  struct InOf {
    T segment_start;  // i32 (M), non-decreasing
  };
  template <class T>
  struct OutOf {
    T tiles;  // i32, see SegmentTilesLayout
  };
  using In = InOf<Tensor>;
  using Out = OutOf<Tensor>;
  using Saved = None;
  static constexpr InOf<Arg> kIn{.segment_start = arg::index};
  static constexpr OutOf<Arg> kOut{.tiles = arg::index};
  OpPlan plan(const In&) const;

  static constexpr int kRows = 128;        // of a tile at most
  static constexpr int kAlone = 64;        // rows of a document behind which the next one begins a tile
  static constexpr int kLongestRun = 256;  // runs of as many tiles or more are of one length for the order
};

struct SegmentTile {
  int32_t first, end;   // its rows
  int32_t back, reach;  // tiles before it in which its first row sees keys; tiles from itself on in which its last key is seen
};

// Where the parts of the result lie, in words. What is not used of `tiles` and `order` is 0.
struct SegmentTilesLayout {
  int64_t rows,
      most;  // `most`: tiles that there may be, as a run ends with a document of kAlone rows or with a row of the batch
  SegmentTilesLayout(int64_t all_rows, int64_t row_length)
      : rows(all_rows), most(all_rows / SegmentTiles::kAlone + all_rows / row_length + 1) {}
  static constexpr int64_t count() { return 0; }        // (1) tiles
  static constexpr int64_t tiles() { return 4; }        // (most) SegmentTile, in the order of rows
  int64_t order() const { return tiles() + 4 * most; }  // (most) their numbers: longest runs first, the last tile of each first
  int64_t ends() const { return order() + most; }       // (M) where each row's document ends
  int64_t slots() const { return ends() + rows; }       // (M) its tile's number times kRows, and its place there
  int64_t words() const { return slots() + rows; }
};

}  // namespace fairway
