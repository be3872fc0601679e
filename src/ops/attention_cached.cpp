#include "ops/attention_cached.h"

namespace fairway {

OpPlan AttentionCached::plan(const In& in) const {
  const int64_t rows = in.q.rows();
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, name, "kv_heads must divide heads");
  require(in.q.cols() % heads == 0 && in.q.cols() / heads * kv_heads == in.k.cols() && in.k.spec == in.v.spec &&
              in.k.rows() == rows,
          name, "q, k and v must have the same rows and head size");
  const int64_t size = in.q.cols() / heads, length = in.values.dim(1);
  require(length > 0 && length % kCacheKeys == 0 && in.values.spec.shape == Shape{rows * kv_heads, length, size} &&
              in.keys.spec.shape == Shape{rows * kv_heads, length / kCacheKeys, size, kCacheKeys},
          name, "the cache must hold whole blocks of positions for every row and kv head");
  require(in.position.spec.dtype == DType::i32 && in.position.numel() == 1, name, "position must be one i32");
  return {.out = {in.q.spec},
          .forward_workspace = static_cast<size_t>(rows * heads * length) * sizeof(double),  // scores
          .flops = 2.0 * static_cast<double>(rows) * static_cast<double>(length) * static_cast<double>(in.q.cols())};
}

}  // namespace fairway
