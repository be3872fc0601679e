// The weights of a model as coded streams, one for each role.
#pragma once

#include <string>
#include <vector>

#include "artifact/sections.h"
#include "artifact/stored_parts.h"
#include "base/thread_pool.h"

namespace fairway {

struct PackOptions {
  CodecChoice codec = CodecChoice::rans;
  ThreadPool* pool = nullptr;  // streams are coded at the same time; the bytes are the same
};

struct CodedStream {
  int64_t weights = 0;
  double entropy_bits = 0;  // order 0, summed over tensors
  Section section;          // of no weights: nothing
};
struct CodedWeights {
  std::vector<CodedStream> streams;  // by role
};

CodedWeights code_streams(const WeightStreams<const int8_t>& streams, const PackOptions& options);

}  // namespace fairway
