// Writes the file of documents' hashes (document_hashes.h) from hashes in any order. Memory is bounded: runs that fit are
// sorted in place where they lie, then merged.
#pragma once

#include "data/document_hashes.h"
#include "data/token_stream.h"

namespace fairway::data {

// Of the stream's hashes, whose order it changes; sorts `run` of them at a time.
ManifestHashes write_hash_file(TokenStream& stream, const std::filesystem::path& folder, uint64_t run);

}  // namespace fairway::data
