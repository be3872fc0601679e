// Attention of 64-wide heads: results against plain sums on the host, then microseconds at the size of pr1105.
//   lab/build attention && build/lab/attention
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "lab/lab.cuh"
#include "ops/cuda/attention_tiles.h"

using namespace fairway;
using namespace fairway::lab;

namespace {

struct Case {
  int64_t sequences, length, heads, kv_heads;
  bool packed;
  int64_t rows() const { return sequences * length; }
};

struct Expected {
  std::vector<double> y, dq, dk, dv;
};

Expected on_host(const Case& c, const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
                 const std::vector<float>& dy, const std::vector<int32_t>& start) {
  const int64_t E = 64, H = c.heads, K = c.kv_heads, M = c.rows();
  Expected out{std::vector<double>(M * H * E), std::vector<double>(M * H * E), std::vector<double>(M * K * E),
               std::vector<double>(M * K * E)};
  const double scale = 1 / std::sqrt(double(E));
  for (int64_t m = 0; m < M; ++m)
    for (int64_t h = 0; h < H; ++h) {
      const int64_t g = h / (H / K), first = c.packed ? start[m] : m / c.length * c.length;
      std::vector<double> p(m - first + 1), dp(m - first + 1);
      double top = -1e30, total = 0, along = 0;
      const auto dot = [&](const std::vector<float>& a, int64_t i, const std::vector<float>& b, int64_t j) {
        double s = 0;
        for (int64_t e = 0; e < E; ++e) s += double(a[i + e]) * b[j + e];
        return s;
      };
      for (int64_t n = first; n <= m; ++n)
        top = std::max(top, p[n - first] = scale * dot(q, (m * H + h) * E, k, (n * K + g) * E));
      for (double& x : p) total += x = std::exp(x - top);
      for (int64_t n = first; n <= m; ++n) {
        p[n - first] /= total;
        dp[n - first] = dot(dy, (m * H + h) * E, v, (n * K + g) * E);
        along += p[n - first] * dp[n - first];
      }
      for (int64_t n = first; n <= m; ++n) {
        const double w = p[n - first], ds = w * (dp[n - first] - along) * scale;
        for (int64_t e = 0; e < E; ++e) {
          out.y[(m * H + h) * E + e] += w * v[(n * K + g) * E + e];
          out.dv[(n * K + g) * E + e] += w * dy[(m * H + h) * E + e];
          out.dq[(m * H + h) * E + e] += ds * k[(n * K + g) * E + e];
          out.dk[(n * K + g) * E + e] += ds * q[(m * H + h) * E + e];
        }
      }
    }
  return out;
}

double worst(const Array& got, const std::vector<double>& want) {
  const std::vector<float> values = got.floats();
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    size += want[i] * want[i];
    const double d = std::abs(values[i] - want[i]);
    error = !(d <= error) ? d : error;
  }
  return error / std::sqrt(size / double(want.size()));
}

void check_case(Lab& lab, const Case& c) {
  const int64_t M = c.rows(), Q = c.heads * 64, K = c.kv_heads * 64;
  Array q = lab.random({M, Q}, 1), k = lab.random({M, K}, 2), v = lab.random({M, K}, 3), dy = lab.random({M, Q}, 4);
  Array y({M, Q}, DType::bf16), lse({M, c.heads}, DType::f32), dq({M, Q}, DType::bf16), dk({M, K}, DType::bf16),
      dv({M, K}, DType::bf16);
  Array starts({M}, DType::i32);
  std::vector<int32_t> start(M);
  for (int64_t m = 0, from = 0; m < M; ++m) {
    if (m % 37 == 0 && (m * 7919) % 5 < 2) from = m;
    start[m] = static_cast<int32_t>(from);
  }
  starts.set(start);
  const Attention op{c.length, c.heads, c.kv_heads, 0.125};
  Attention::In in{q.tensor, k.tensor, v.tensor, c.packed ? starts.tensor : Tensor{}};
  {
    cuda::Scratch scratch(&lab.queue);
    if (!cuda::suits_attention_tiles(scratch.context(), op, in)) return void(std::puts("refused"));
    cuda::attention_tiles_forward(scratch, op, {in, {y.tensor}, {lse.tensor}, {}, &lab.queue});
  }
  {
    cuda::Scratch scratch(&lab.queue);
    const Backward<Attention> call{in, {y.tensor}, {lse.tensor}, {dy.tensor}, {dq.tensor, dk.tensor, dv.tensor},
                                   {}, &lab.queue};
    cuda::attention_tiles_backward(scratch, op, call, op.output_of(call, dy.tensor));
  }
  lab.context.wait();
  const Expected e = on_host(c, q.floats(), k.floats(), v.floats(), dy.floats(), start);
  std::printf("%lld x %lld, %lld of %lld heads%s: worst error / rms: y %.4f dq %.4f dk %.4f dv %.4f\n", (long long)c.sequences,
              (long long)c.length, (long long)c.kv_heads, (long long)c.heads, c.packed ? ", packed" : "", worst(y, e.y),
              worst(dq, e.dq), worst(dk, e.dk), worst(dv, e.dv));
}

void time_case(Lab& lab, const Case& c) {
  const int64_t M = c.rows(), Q = c.heads * 64, K = c.kv_heads * 64;
  Array q = lab.random({M, Q}, 1), k = lab.random({M, K}, 2), v = lab.random({M, K}, 3), dy = lab.random({M, Q}, 4);
  Array y({M, Q}, DType::bf16), lse({M, c.heads}, DType::f32), dq({M, Q}, DType::bf16), dk({M, K}, DType::bf16),
      dv({M, K}, DType::bf16);
  const Attention op{c.length, c.heads, c.kv_heads, 0.125};
  const Attention::In in{q.tensor, k.tensor, v.tensor, {}};
  const double flops = 2.0 * double(c.length) * double(M) * double(Q);  // two products, half of them hidden
  const double forward = lab.time([&] {
    cuda::Scratch scratch(&lab.queue);
    cuda::attention_tiles_forward(scratch, op, {in, {y.tensor}, {lse.tensor}, {}, &lab.queue});
  });
  const auto backward_of = [&](const Attention::In& wanted) {
    return lab.time([&] {
      cuda::Scratch scratch(&lab.queue);
      const Backward<Attention> call{in, {y.tensor}, {lse.tensor}, {dy.tensor}, wanted, {}, &lab.queue};
      cuda::attention_tiles_backward(scratch, op, call, op.output_of(call, dy.tensor));
    });
  };
  const double backward = backward_of({dq.tensor, dk.tensor, dv.tensor, {}});
  std::printf("%lld x %lld: forward %.1f us (%.0f TFLOP/s), backward %.1f us (%.0f TFLOP/s)\n", (long long)c.sequences,
              (long long)c.length, forward * 1e6, flops / forward * 1e-12, backward * 1e6, 2.5 * flops / backward * 1e-12);
}

}  // namespace

int main(int count, char**) {
  Lab lab;
  if (count == 1)
    for (const Case& c : {Case{1, 128, 1, 1, false}, Case{2, 384, 4, 2, false}, Case{1, 256, 2, 2, false},
                          Case{1, 512, 4, 2, true}, Case{1, 640, 8, 4, true}})
      check_case(lab, c);
  for (int i = 0; i < 1; ++i) time_case(lab, {48, 2048, 8, 4, false});
}
