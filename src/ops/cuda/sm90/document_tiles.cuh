// Packed documents cut into tiles of at most 128 rows, so that attention's work follows the pairs inside of documents. A tile
// begins where a row of the batch does, where a document begins behind one of at least 64 tokens, and 128 rows after the tile
// before. So a long document begins its own tiles (at any other place it would meet one more of them), and short ones share.
// Only what lies before a row says where its tile begins: a score does not depend on later text, nor on other rows.
#pragma once

#include "ops/cuda/sm90/attention_shape.cuh"

namespace fairway::cuda {

struct alignas(16) DocumentTile {
  int first, end;   // its rows
  int back, reach;  // tiles before it in which its first row sees keys; tiles from itself on in which its last key is seen
};

struct DocumentTiles {
  const DocumentTile* tiles = nullptr;  // in the order of rows; null: whole sequences
  const int* order = nullptr;           // their numbers: longest runs of tiles first, the last tile of each first
  const int* count = nullptr;           // of tiles
  const int* ends = nullptr;            // (T) where each row's document ends
  int most = 0;                         // tiles that there may be
  __device__ const DocumentTile& next(int item) const { return tiles[order[item]]; }
};

DocumentTiles document_tiles(Scratch& scratch, const HeadShape& s);

}  // namespace fairway::cuda
