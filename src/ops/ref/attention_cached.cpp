// keys[position] = k, values[position] = v, then y = Σ_t p_t values[t] with p = softmax(scale·q·keys) over t <= position.
#include <cmath>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

// The caches of one row and kv head, and where it stands in k and v.
struct CacheHead {
  int64_t size, length, head;
  int64_t key(int64_t t, int64_t e) const { return head * length * size + cached_key(t, e, size); }
  int64_t value(int64_t t, int64_t e) const { return (head * length + t) * size + e; }
};

}  // namespace

void forward(const AttentionCached& op, const Forward<AttentionCached>& f) {
  const int64_t size = f.in.q.cols() / op.heads, length = f.in.values.dim(1), position = *f.in.position.as<int32_t>();
  FAIRWAY_ASSERT(position >= 0 && position < length, "a position outside of the cache");
  with_dtype(f.in.q, [&]<class T>() {
    const Values<T> q(f.in.q), k(f.in.k), v(f.in.v), keys(f.in.keys), values(f.in.values);
    const Target<T> to_keys(f.in.keys), to_values(f.in.values), y(f.out.y);
    double* p = zeros(f.workspace, length);
    for (int64_t h = 0; h < f.in.q.rows() * op.heads; ++h) {
      const CacheHead cache{size, length, h / (op.heads / op.kv_heads)};
      for (int64_t e = 0; e < size; ++e) {
        to_keys.put(cache.key(position, e), k[cache.head * size + e]);
        to_values.put(cache.value(position, e), v[cache.head * size + e]);
      }
      double highest = -INFINITY, total = 0;
      for (int64_t t = 0; t <= position; ++t) {
        p[t] = op.scale * sum(size, [&](int64_t e) { return q[h * size + e] * keys[cache.key(t, e)]; });
        highest = std::max(highest, p[t]);
      }
      for (int64_t t = 0; t <= position; ++t) total += p[t] = std::exp(p[t] - highest);
      for (int64_t e = 0; e < size; ++e)
        y.put(h * size + e, sum(position + 1, [&](int64_t t) { return p[t] / total * values[cache.value(t, e)]; }));
    }
  });
}

}  // namespace fairway::ref
