#include "ops_cuda/naive_bf16.h"

#include <bit>
#include <cmath>

namespace fairway::ops_test {
namespace {

double& at(Naive& m, int64_t row, int64_t column) { return m.at[static_cast<size_t>(row * m.cols + column)]; }
double at(const Naive& m, int64_t row, int64_t column) { return m.at[static_cast<size_t>(row * m.cols + column)]; }
Naive zeros(int64_t rows, int64_t cols) { return {rows, cols, std::vector<double>(static_cast<size_t>(rows * cols))}; }

// Every element from its place.
template <class Element>
Naive made(int64_t rows, int64_t cols, Element&& element) {
  Naive out = zeros(rows, cols);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) at(out, i, j) = round_bf16(element(i, j));
  return out;
}
template <class Term>
double sum(int64_t count, Term&& term) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += term(i);
  return total;
}
Naive times_transposed(const Naive& a, const Naive& b) {
  return made(a.rows, b.rows,
              [&](int64_t i, int64_t j) { return sum(a.cols, [&](int64_t k) { return at(a, i, k) * at(b, j, k); }); });
}
Naive times(const Naive& a, const Naive& b) {
  return made(a.rows, b.cols,
              [&](int64_t i, int64_t j) { return sum(a.cols, [&](int64_t k) { return at(a, i, k) * at(b, k, j); }); });
}
Naive transposed_times(const Naive& a, const Naive& b) {
  return made(a.cols, b.cols,
              [&](int64_t i, int64_t j) { return sum(a.rows, [&](int64_t k) { return at(a, k, i) * at(b, k, j); }); });
}
Naive plus(const Naive& a, const Naive& b) {
  return made(a.rows, a.cols, [&](int64_t i, int64_t j) { return at(a, i, j) + at(b, i, j); });
}
// A scale for each column, or one for all.
Naive scaled(const Naive& a, const Naive& scale) {
  return made(a.rows, a.cols,
              [&](int64_t i, int64_t j) { return at(a, i, j) * scale.at[scale.cols == 1 ? 0 : static_cast<size_t>(j)]; });
}
Naive scale_gradient(const Naive& g, const Naive& product, const Naive& scale) {
  if (scale.cols > 1 || g.cols == 1)
    return made(1, g.cols,
                [&](int64_t, int64_t j) { return sum(g.rows, [&](int64_t i) { return at(g, i, j) * at(product, i, j); }); });
  return made(1, 1, [&](int64_t, int64_t) {
    return sum(g.rows * g.cols, [&](int64_t i) { return g.at[static_cast<size_t>(i)] * product.at[static_cast<size_t>(i)]; });
  });
}

}  // namespace

double round_bf16(double x) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  const auto rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<double>(std::bit_cast<float>(rounded << 16));
}

NaiveResults naive_bf16(const QkvProject&, const std::vector<Naive>& in, const std::vector<Naive>& dout) {
  const auto [x, weight_q, weight_k, weight_v] = by_name<QkvProject::InOf>(in);
  const auto [q, k, v] = by_name<QkvProject::OutOf>(dout);
  return {{times_transposed(x, weight_q), times_transposed(x, weight_k), times_transposed(x, weight_v)},
          {plus(plus(times(q, weight_q), times(k, weight_k)), times(v, weight_v)), transposed_times(q, x),
           transposed_times(k, x), transposed_times(v, x)}};
}

NaiveResults naive_bf16(const ProjectResidual&, const std::vector<Naive>& in, const std::vector<Naive>& dout) {
  const auto [x, h, weight, scale] = by_name<ProjectResidual::InOf>(in);
  const Naive g = by_name<ProjectResidual::OutOf>(dout).y;
  const Naive product = times_transposed(h, weight), y = scaled(product, scale), gs = scaled(g, scale);
  return {{x.rows > 0 ? plus(x, y) : y},
          {x.rows > 0 ? g : Naive{}, times(gs, weight), transposed_times(gs, h), scale_gradient(g, product, scale)}};
}

NaiveResults naive_bf16(const LowRankAdd& op, const std::vector<Naive>& in, const std::vector<Naive>& dout) {
  const auto [base, x, a, b, gain] = by_name<LowRankAdd::InOf>(in);
  const Naive g = by_name<LowRankAdd::OutOf>(dout).y, scale{1, 1, {op.scale}};
  const int64_t documents = a.rows / b.cols;
  Naive y = zeros(0, b.rows / documents), up = y, dx = zeros(0, x.cols), da = zeros(0, a.cols), db = zeros(0, b.cols);
  const auto append = [](Naive& to, const Naive& rows) {
    to.rows += rows.rows;
    to.at.insert(to.at.end(), rows.at.begin(), rows.at.end());
  };
  for (int64_t d = 0; d < documents; ++d) {
    const auto part = [&](const Naive& all) {
      const int64_t rows = all.rows / documents;
      return made(rows, all.cols, [&](int64_t i, int64_t j) { return at(all, d * rows + i, j); });
    };
    const Naive own = part(x), down = part(a), factor = part(b), go = part(g);
    const Naive low = scaled(times_transposed(own, down), scale), product = times_transposed(low, factor);
    const Naive gs = gain.rows > 0 ? scaled(go, gain) : go, dlow = scaled(times(gs, factor), scale);
    append(up, product);
    append(dx, times(dlow, down));
    append(da, transposed_times(dlow, own));
    append(db, transposed_times(gs, low));
  }
  y = gain.rows > 0 ? scaled(up, gain) : up;
  return {{base.rows > 0 ? plus(base, y) : y},
          {base.rows > 0 ? g : Naive{}, dx, da, db, gain.rows > 0 ? scale_gradient(g, up, gain) : Naive{}}};
}

NaiveResults naive_bf16(const ProjectedEmbed& op, const std::vector<Naive>& in, const std::vector<Naive>& dout) {
  const auto arguments = by_name<ProjectedEmbed::InOf>(in);
  const Naive &tokens = arguments.tokens, &table = arguments.table, &proj = arguments.proj, &scale = arguments.scale;
  const Naive g = by_name<ProjectedEmbed::OutOf>(dout).y;
  const int64_t rows = tokens.cols;
  const auto index = [&](int64_t m) {
    const auto token = [&](int64_t i) { return static_cast<int64_t>(tokens.at[static_cast<size_t>(i)]); };
    if (op.index == ProjectedEmbed::Index::token) return token(m);
    return m % op.row_length == 0 ? table.rows - 1 : ((36313 * token(m)) ^ (27191 * token(m - 1))) % (table.rows - 1);
  };
  const Naive gathered = made(rows, table.cols, [&](int64_t m, int64_t c) { return at(table, index(m), c); });
  const Naive product = times_transposed(gathered, proj), gs = scaled(g, scale), back = times(gs, proj);
  Naive dtable = zeros(table.rows, table.cols);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t c = 0; c < table.cols; ++c) at(dtable, index(m), c) += at(back, m, c);
  return {{scaled(product, scale)}, {{}, dtable, transposed_times(gs, gathered), scale_gradient(g, product, scale)}};
}

NaiveResults naive_bf16(const Attention& op, const std::vector<Naive>& in, const std::vector<Naive>& dout) {
  const auto arguments = by_name<Attention::InOf>(in);
  const Naive &q = arguments.q, &k = arguments.k, &v = arguments.v, &start = arguments.segment_start;
  const Naive &dz = by_name<Attention::OutOf>(dout).z, &logit = arguments.logit;
  const int64_t size = q.cols / op.heads, group = op.heads / op.kv_heads;
  // What HeadOutput does to head h of row m: s·(x − (x·u)u), to outputs and to their gradients alike.
  const auto open = [&](int64_t m, int64_t h) { return logit.rows > 0 ? 1 / (1 + std::exp(-0.5 * at(logit, m, h))) : 1; };
  const auto norm = [&](int64_t m, int64_t h) {
    return std::sqrt(sum(size, [&](int64_t e) { return std::pow(at(v, m, h / group * size + e), 2); }));
  };
  const auto on_value = [&](const Naive& x, int64_t m, int64_t h) {  // x·u
    return sum(size, [&](int64_t e) { return at(x, m, h * size + e) * at(v, m, h / group * size + e); }) / norm(m, h);
  };
  const auto shaped = [&](const Naive& x) {
    return made(x.rows, x.cols, [&](int64_t m, int64_t c) {
      const int64_t h = c / size;
      const double taken = op.exclusive ? on_value(x, m, h) * at(v, m, h / group * size + c % size) / norm(m, h) : 0;
      return open(m, h) * (at(x, m, c) - taken);
    });
  };
  const Naive g = shaped(dz);
  Naive y = zeros(q.rows, q.cols), dq = y, dk = zeros(k.rows, k.cols), dv = dk;
  for (int64_t h = 0; h < op.heads; ++h) {
    const int64_t query = h * size, key = h / group * size;
    Naive dk_head = zeros(k.rows, size), dv_head = dk_head;
    const auto dot = [&](const Naive& a, int64_t m, const Naive& b, int64_t n) {
      return sum(size, [&](int64_t e) { return at(a, m, query + e) * at(b, n, key + e); });
    };
    for (int64_t m = 0; m < q.rows; ++m) {
      const int64_t first = start.rows > 0 ? static_cast<int64_t>(start.at[static_cast<size_t>(m)]) : m - m % op.row_length;
      const int64_t count = m - first + 1;
      Naive p = made(1, count, [&](int64_t, int64_t n) { return op.scale * dot(q, m, k, first + n); });  // scores
      double highest = p.at[0], total = 0;
      for (double score : p.at) highest = std::max(highest, score);
      for (double score : p.at) total += std::exp(score - highest);
      p = made(1, count, [&](int64_t, int64_t n) { return std::exp(p.at[static_cast<size_t>(n)] - highest) / total; });
      const Naive dp = made(1, count, [&](int64_t, int64_t n) { return dot(g, m, v, first + n); });
      const double mean = sum(count, [&](int64_t n) { return at(p, 0, n) * at(dp, 0, n); });
      Naive ds = made(1, count, [&](int64_t, int64_t n) { return at(p, 0, n) * (at(dp, 0, n) - mean); });
      ds = made(1, count, [&](int64_t, int64_t n) { return at(ds, 0, n) * op.scale; });
      for (int64_t e = 0; e < size; ++e) {
        at(y, m, query + e) = round_bf16(sum(count, [&](int64_t n) { return at(p, 0, n) * at(v, first + n, key + e); }));
        at(dq, m, query + e) = round_bf16(sum(count, [&](int64_t n) { return at(ds, 0, n) * at(k, first + n, key + e); }));
        for (int64_t n = 0; n < count; ++n) {
          at(dk_head, first + n, e) += at(ds, 0, n) * at(q, m, query + e);
          at(dv_head, first + n, e) += at(p, 0, n) * at(g, m, query + e);
        }
      }
    }
    for (int64_t n = 0; n < k.rows; ++n)
      for (int64_t e = 0; e < size; ++e) {
        at(dk, n, key + e) += round_bf16(at(dk_head, n, e));
        at(dv, n, key + e) += round_bf16(at(dv_head, n, e));
      }
  }
  const Naive z = shaped(y);
  for (int64_t i = 0; op.exclusive && i < q.rows * q.cols; ++i) {
    const int64_t m = i / q.cols, c = i % q.cols, h = c / size;
    at(dv, m, h / group * size + c % size) -= (on_value(dz, m, h) * at(z, m, c) + on_value(y, m, h) * at(g, m, c)) / norm(m, h);
  }
  const Naive dlogit = made(logit.rows, logit.cols, [&](int64_t m, int64_t h) {
    return 0.5 * (1 - open(m, h)) * sum(size, [&](int64_t e) { return at(dz, m, h * size + e) * at(z, m, h * size + e); });
  });
  return {{z}, {dq, dk, dv, {}, dlogit, {}}};
}

}  // namespace fairway::ops_test
