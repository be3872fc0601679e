// What calibration runs on a device besides products, at the sizes of pr1105 with 64 rows: attention over the caches, drawing
// tokens, and GPTQ's loops. Attention and draws are compared with plain loops on the host.
//   lab/build decode && build/lab/decode
#include <cmath>
#include <cstdio>

#include "lab/lab.cuh"
#include "ops/cuda/cuda.h"
#include "ops/draw_row.h"

using namespace fairway;

namespace {

constexpr int64_t kRows = 64, kHeads = 8, kKvHeads = 4, kSize = 64, kLength = 2048, kVocab = 1024;

std::vector<float> random_values(size_t count, unsigned seed, float size) {
  std::mt19937 generator(seed);
  std::vector<float> out(count);
  for (float& x : out) x = size * (float(generator() % 65536) / 32768 - 1);
  return out;
}

template <class T>
std::vector<T> back(const lab::Array& a) {
  std::vector<T> out(a.buffer.bytes() / sizeof(T));
  cudaMemcpy(out.data(), a.buffer.data(), a.buffer.bytes(), cudaMemcpyDeviceToHost);
  return out;
}

void attention(lab::Lab& lab) {
  const int64_t heads = kRows * kKvHeads;
  lab::Array q({kRows, kHeads * kSize}, DType::f32), k({kRows, kKvHeads * kSize}, DType::f32),
      v = lab::Array(k.tensor.spec.shape, DType::f32);
  lab::Array keys({heads, kLength / kCacheKeys, kSize, kCacheKeys}, DType::f32), values({heads, kLength, kSize}, DType::f32),
      position({1}, DType::i32), y({kRows, kHeads * kSize}, DType::f32);
  const auto fill = [](lab::Array& a, unsigned seed, float size) { a.set(random_values(a.buffer.bytes() / 4, seed, size)); };
  fill(q, 1, 2), fill(k, 2, 2), fill(v, 3, 1), fill(keys, 4, 2), fill(values, 5, 1);
  const AttentionCached op{.heads = kHeads, .kv_heads = kKvHeads, .scale = 0.125};
  const auto run = [&] {
    cuda::forward(
        op, {{q.tensor, k.tensor, v.tensor, keys.tensor, values.tensor, position.tensor}, {y.tensor}, {}, {}, &lab.queue});
  };
  const auto hq = back<float>(q);
  for (int32_t last : {0, 1, 127, 128, 1000, 2047}) {
    position.set(std::vector<int32_t>{last});
    run();
    cuda::check(cudaDeviceSynchronize(), "attention_cached");
    const auto hk = back<float>(keys), hv = back<float>(values), hy = back<float>(y);
    double error = 0, power = 0;
    for (int64_t h = 0; h < kRows * kHeads; h += 37) {
      const int64_t head = h / 2;
      std::vector<double> p(static_cast<size_t>(last + 1));
      double highest = -INFINITY, total = 0;
      for (int64_t t = 0; t <= last; ++t) {
        double s = 0;
        for (int64_t e = 0; e < kSize; ++e)
          s += double(hq[h * kSize + e]) * hk[head * kLength * kSize + cached_key(t, e, kSize)];
        highest = std::max(highest, p[t] = 0.125 * s);
      }
      for (double& x : p) total += x = std::exp(x - highest);
      for (int64_t e = 0; e < kSize; ++e) {
        double sum = 0;
        for (int64_t t = 0; t <= last; ++t) sum += p[t] / total * hv[(head * kLength + t) * kSize + e];
        error += (hy[h * kSize + e] - sum) * (hy[h * kSize + e] - sum), power += sum * sum;
      }
    }
    std::printf("cached attention at %4d: %7.1f us a layer, off by %.1e\n", last, 1e6 * lab.time(run),
                std::sqrt(error / power));
  }
}

void draws(lab::Lab& lab) {
  constexpr int64_t kSteps = 12;
  lab::Array logits({kRows, kVocab}, DType::f32), chances({kRows, kSteps}, DType::f64), text({kRows, kSteps}, DType::i32),
      position({1}, DType::i32);
  lab::Array window({kRows * 3}, DType::i32), pick({kRows}, DType::i32), tokens({kRows}, DType::i32),
      rope({kSteps, 16}, DType::f32), angles({1, 16}, DType::f32);
  std::mt19937_64 generator(7);
  std::vector<double> u(kRows * kSteps);
  for (double& x : u) x = double(generator() >> 11) * 0x1p-53;
  chances.set(u);
  rope.set(random_values(kSteps * 16, 8, 1));
  for (double temperature : {0.8, 0.0}) {
    const DrawTokens op{.temperature = temperature};
    struct {
      std::vector<float> logits, rope, angles;
      std::vector<double> chances, weights;
      std::vector<int32_t> text, position, window, pick, tokens;
    } h{{},
        back<float>(rope),
        std::vector<float>(16),
        u,
        std::vector<double>(kRows * kVocab),
        std::vector<int32_t>(kRows * kSteps),
        {0},
        std::vector<int32_t>(kRows * 3),
        std::vector<int32_t>(kRows),
        std::vector<int32_t>(kRows)};
    for (lab::Array* a : {&text, &position, &window, &pick, &tokens}) cudaMemset(a->buffer.data(), 0, a->buffer.bytes());
    for (int step = 0; step + 1 < kSteps; ++step) {
      h.logits = random_values(kRows * kVocab, 100 + step, 6);
      logits.set(h.logits);
      cuda::forward(op, {{logits.tensor, chances.tensor, text.tensor, position.tensor, window.tensor, pick.tensor,
                          tokens.tensor, rope.tensor, angles.tensor},
                         {},
                         {},
                         {},
                         &lab.queue});
      cuda::check(cudaDeviceSynchronize(), "draw_tokens");
      const auto at = [](auto& values, Shape shape, DType type) { return make_view(values.data(), {shape, type}); };
      const DrawTokens::In in{at(h.logits, {kRows, kVocab}, DType::f32), at(h.chances, {kRows, kSteps}, DType::f64),
                              at(h.text, {kRows, kSteps}, DType::i32),   at(h.position, {1}, DType::i32),
                              at(h.window, {kRows * 3}, DType::i32),     at(h.pick, {kRows}, DType::i32),
                              at(h.tokens, {kRows}, DType::i32),         at(h.rope, {kSteps, 16}, DType::f32),
                              at(h.angles, {1, 16}, DType::f32)};
      for (int64_t row = 0; row < kRows; ++row) draw_row<float>(op, in, row, h.weights.data());
      advance_position<float>(in);
    }
    const bool equal = back<int32_t>(text) == h.text && back<int32_t>(window) == h.window && back<int32_t>(pick) == h.pick &&
                       back<int32_t>(tokens) == h.tokens && back<int32_t>(position) == h.position &&
                       back<float>(angles) == h.angles;
    std::printf("draws at temperature %.1f: %s\n", temperature, equal ? "those of the host" : "DIFFERENT");
  }
  const double seconds = lab.time([&] {
    cudaMemsetAsync(position.buffer.data(), 0, 4, lab.context.stream());
    cuda::forward({.temperature = 0.8},
                  Forward<DrawTokens>{{logits.tensor, chances.tensor, text.tensor, position.tensor, window.tensor, pick.tensor,
                                       tokens.tensor, rope.tensor, angles.tensor},
                                      {},
                                      {},
                                      {},
                                      &lab.queue});
  });
  std::printf("draws: %.1f us\n", seconds * 1e6);
}

void gptq(lab::Lab& lab) {
  for (int64_t n : {512, 1536}) {
    lab::Array matrix({n, n}, DType::f64), factor({n, n}, DType::f32), status({1}, DType::f64), work({512, n}, DType::f32),
        scale({512}, DType::f32), error({512, 128}, DType::f32), loss({512}, DType::f64);
    std::vector<double> values(n * n, 0.1);
    for (int64_t i = 0; i < n; ++i) values[i * n + i] = 1 + 0.001 * double(i);
    matrix.set(values);
    const double inverse = lab.time(
        [&] {
          cuda::forward(CholeskyInverse{.damping = 0.01},
                        {{matrix.tensor, factor.tensor, status.tensor}, {}, {}, {}, &lab.queue});
        },
        3, 2);
    work.set(random_values(512 * n, 9, 1));
    scale.set(std::vector<float>(512, 0.05f));
    const double blocks = lab.time(
        [&] {
          for (int64_t begin = 0; begin < n; begin += 128)
            cuda::forward(GptqBlock{.begin = begin, .end = begin + 128, .levels = 31},
                          {{work.tensor, factor.tensor, scale.tensor, error.tensor, loss.tensor}, {}, {}, {}, &lab.queue});
        },
        3, 2);
    std::printf("side %5ld: factor %.1f ms (status %.0f), GPTQ of 512 rows %.2f ms\n", long(n), inverse * 1e3,
                back<double>(status)[0], blocks * 1e3);
  }
}

}  // namespace

int main() {
  lab::Lab lab;
  attention(lab);
  draws(lab);
  gptq(lab);
}
