// SegmentTiles in plain C++, for the backends whose time it is not.
#pragma once

#include <algorithm>

#include "ops/segment_tiles.h"

namespace fairway {

inline void cut_segments(const SegmentTiles& op, const Forward<SegmentTiles>& f) {
  const auto* start = f.in.segment_start.as<int32_t>();
  const SegmentTilesLayout at(f.in.segment_start.numel(), op.row_length);
  int32_t *out = f.out.tiles.as<int32_t>(), *ends = out + at.ends(), *slots = out + at.slots(), *place = out + at.order();
  auto* first_tile = reinterpret_cast<int32_t*>(f.workspace.data);  // of each run, and of one behind the last
  std::fill_n(out, at.words(), 0);
  const auto rows = static_cast<int32_t>(at.rows);
  for (int32_t row = rows - 1, end = rows; row >= 0; --row) {
    ends[row] = end;
    if (start[row] == row) end = row;
  }
  auto* tiles = reinterpret_cast<SegmentTile*>(out + at.tiles());
  int32_t count = 0, runs = 0;
  for (int32_t row = 0; row < rows; ++row) {
    const bool begins = start[row] == row && (row % op.row_length == 0 || row - start[row - 1] >= SegmentTiles::kAlone);
    if (begins) first_tile[runs++] = count;
    if (begins || row == tiles[count - 1].first + SegmentTiles::kRows) tiles[count++].first = row;
    tiles[count - 1].end = row + 1;
    slots[row] = (count - 1) * SegmentTiles::kRows + row - tiles[count - 1].first;
  }
  out[at.count()] = first_tile[runs] = count;
  for (int32_t run = 0; run < runs; ++run)
    for (int32_t tile = first_tile[run], begin = tiles[tile].first; tile < first_tile[run + 1]; ++tile) {
      const int32_t inside = tile - first_tile[run];
      tiles[tile].back = inside - (start[tiles[tile].first] - begin) / SegmentTiles::kRows;
      tiles[tile].reach = (ends[tiles[tile].end - 1] - 1 - begin) / SegmentTiles::kRows - inside + 1;
    }
  for (int32_t length = SegmentTiles::kLongestRun; length > 0; --length)
    for (int32_t run = 0; run < runs; ++run)
      if (std::min(first_tile[run + 1] - first_tile[run], SegmentTiles::kLongestRun) == length)
        for (int32_t tile = first_tile[run + 1]; tile-- > first_tile[run];) *place++ = tile;
}

}  // namespace fairway
