// p_mn = exp(scale·q_m·k_n − lse_m) over the rows n that m may see, y_m = Σ_n p_mn v_n (spec §4.6.6). Backward, with
// dp_mn = g_m·v_n: ds_mn = p_mn·(dp_mn − Σ_j p_mj dp_mj)·scale, dq_m = Σ ds k, dk_n = Σ ds q, dv_n = Σ p g. HeadOutput
// ends the one and begins the other.
#include <cmath>
#include <limits>

#include "ops/ref/ref.h"
#include "ops/ref/values.h"

namespace fairway::ref {
namespace {

int64_t first_visible(const Attention& op, const Attention::In& in, int64_t m) {
  if (!in.segment_start) return m - m % op.row_length;
  const int64_t first = in.segment_start.as<int32_t>()[m];
  FAIRWAY_ASSERT(first >= 0 && first <= m, "a segment starts after its row");
  return first;
}

struct Sizes {
  int64_t rows, heads, kv_heads, head_dim;
  Sizes(const Attention& op, const Attention::In& in)
      : rows(in.q.rows()), heads(op.heads), kv_heads(op.kv_heads), head_dim(in.q.cols() / op.heads) {}
  int64_t query(int64_t m, int64_t h) const { return (m * heads + h) * head_dim; }  // offset of head h of row m
  int64_t kv(int64_t n, int64_t h) const { return (n * kv_heads + h / (heads / kv_heads)) * head_dim; }
};

void attend(const Attention& op, const Forward<Attention>& f) {
  with_dtype(f.in.q, [&]<class T>() {
    const Values<T> q(f.in.q), k(f.in.k), v(f.in.v);
    const Target<T> y(f.out.z), lse(f.saved.lse);
    const Sizes size(op, f.in);
    double* p = zeros(f.workspace, size.rows);  // scores, then probabilities, of one query
    for (int64_t m = 0; m < size.rows; ++m)
      for (int64_t h = 0; h < size.heads; ++h) {
        const int64_t first = first_visible(op, f.in, m), at = size.query(m, h);
        double highest = -std::numeric_limits<double>::infinity();
        for (int64_t n = first; n <= m; ++n) {
          const int64_t key = size.kv(n, h);
          p[n] = op.scale * sum(size.head_dim, [&](int64_t e) { return q[at + e] * k[key + e]; });
          highest = std::max(highest, p[n]);
        }
        double total = 0;
        for (int64_t n = first; n <= m; ++n) total += std::exp(p[n] - highest);
        const double log_total = highest + std::log(total);
        lse.put(m * size.heads + h, log_total);
        for (int64_t n = first; n <= m; ++n) p[n] = std::exp(p[n] - log_total);
        for (int64_t e = 0; e < size.head_dim; ++e)
          y.put(at + e, sum(m - first + 1, [&](int64_t n) { return p[first + n] * v[size.kv(first + n, h) + e]; }));
      }
  });
}

void attend_back(const Attention& op, const Backward<Attention>& b) {
  with_dtype(b.in.q, [&]<class T>() {
    const Values<T> q(b.in.q), k(b.in.k), v(b.in.v), lse(b.saved.lse), g(b.dout.z);
    const Target<T> dq(b.din.q), dk(b.din.k), dv(b.din.v);
    const Sizes size(op, b.in);
    const int64_t kv_count = b.in.k.numel();
    double* dk_sum = zeros(b.workspace, 2 * kv_count + 2 * size.rows);
    double *dv_sum = dk_sum + kv_count, *p = dv_sum + kv_count, *ds = p + size.rows;
    for (int64_t m = 0; m < size.rows; ++m)
      for (int64_t h = 0; h < size.heads; ++h) {
        const int64_t first = first_visible(op, b.in, m), at = size.query(m, h);
        double mean = 0;  // Σ_j p_mj dp_mj
        for (int64_t n = first; n <= m; ++n) {
          const int64_t key = size.kv(n, h);
          const double score = op.scale * sum(size.head_dim, [&](int64_t e) { return q[at + e] * k[key + e]; });
          p[n] = std::exp(score - lse[m * size.heads + h]);
          ds[n] = sum(size.head_dim, [&](int64_t e) { return g[at + e] * v[key + e]; });
          mean += p[n] * ds[n];
        }
        for (int64_t n = first; n <= m; ++n) {
          const int64_t key = size.kv(n, h);
          ds[n] = p[n] * (ds[n] - mean) * op.scale;
          for (int64_t e = 0; e < size.head_dim; ++e) {
            dk_sum[key + e] += ds[n] * q[at + e];
            dv_sum[key + e] += p[n] * g[at + e];
          }
        }
        for (int64_t e = 0; e < size.head_dim; ++e)
          dq.put(at + e, sum(m - first + 1, [&](int64_t n) { return ds[first + n] * k[size.kv(first + n, h) + e]; }));
      }
    for (int64_t i = 0; i < kv_count; ++i) {
      dk.put(i, dk_sum[i]);
      dv.put(i, dv_sum[i]);
    }
  });
}

}  // namespace

void forward(const Attention& op, const Forward<Attention>& f) {
  attend(op, f);
  if (op.shapes_output(f.in)) forward(op.output(), op.output_of(f));
}

void backward(const Attention& op, const Backward<Attention>& b) {
  if (!op.shapes_output(b.in)) return attend_back(op, b);
  const Tensor dy = make_view(b.workspace.data + b.workspace.spec.bytes() - b.in.q.spec.bytes(), b.in.q.spec);
  backward(op.output(), op.output_of(b, dy));
  attend_back(op, op.before_output(b, dy));
}

}  // namespace fairway::ref
