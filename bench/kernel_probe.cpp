// Rates of the CPU kernels against the machine's measured multiply-add peak: kernel_probe [threads] [rounds] [gemm|flash].
// The best of several rounds is shown; shapes are interleaved so that a busy neighbour hits all of them alike. With one thread
// time is the processor's, which a busy machine disturbs less.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ops/cpu/flash.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/peak.h"
#include "tensor/arena.h"

namespace {

using namespace fairway;
using namespace fairway::cpu;

struct Probe {
  std::string name;
  double flops;
  std::function<void()> run;
  double best = 1e30;
};

double seconds_now(int threads) {
  if (threads == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Arena memory as training has it: large pages, so strided rows cost no page walk.
struct Buffers {
  static constexpr int64_t kFloats = 8 << 20;
  explicit Buffers(int threads) : arena("probe", 6 * kFloats * sizeof(float) + (size_t{1} << 30)) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    for (float** x : {&a, &b, &c, &d, &e, &f}) {
      *x = arena.make("x", {{kFloats}, DType::f32}).as<float>();
      for (int64_t i = 0; i < kFloats; ++i) (*x)[i] = normal(engine);
    }
    gemm_scratch = bytes(gemm_workspace(threads));
  }
  std::byte* bytes(size_t count) { return arena.make("scratch", {{static_cast<int64_t>(count)}, DType::u8}).data; }

  Arena arena;
  float *a, *b, *c, *d, *e, *f;
  std::byte* gemm_scratch;
};

void add_gemm(std::vector<Probe>& probes, ThreadPool& pool, Buffers& buffers, ProductLayout layout, int64_t m, int64_t n,
              int64_t k) {
  GemmArgs g;
  g.layout = layout;
  g.m = m, g.n = n, g.k = k;
  g.a = buffers.a, g.lda = layout == ProductLayout::tn ? m : k;
  g.b = buffers.b, g.ldb = layout == ProductLayout::nt ? k : n;
  g.c = buffers.c, g.ldc = n;
  const char* names[] = {"NT", "NN", "TN"};
  char name[64];
  std::snprintf(name, sizeof name, "gemm %s %ld x %ld x %ld", names[static_cast<int>(layout)], m, n, k);
  probes.push_back({name, 2.0 * m * n * k, [&pool, &buffers, g] { gemm(pool, g, buffers.gemm_scratch); }});
}

void add_flash(std::vector<Probe>& probes, ThreadPool& pool, Buffers& buffers, int64_t batch, int64_t time) {
  const FlashShape shape{batch * time, time, 8, 4, 64, 0.125f};
  const double causal = 4.0 * batch * 8 * 64 * (0.5 * time * (time + 1));  // two products over the visible half
  std::byte* scratch = buffers.bytes(std::max(flash_forward_workspace(shape), flash_backward_workspace(shape)));
  float *y = buffers.c, *lse = buffers.d;
  const float *q = buffers.a, *k = buffers.b, *v = buffers.b + (4 << 20);
  const FlashForward forward{.shape = shape, .q = q, .k = k, .v = v, .y = y, .lse = lse};
  FlashBackward backward{.shape = shape, .q = q, .k = k, .v = v, .y = y, .lse = lse, .dy = buffers.a + (4 << 20)};
  backward.dq = buffers.e, backward.dk = buffers.f, backward.dv = buffers.f + (4 << 20);
  const std::string name = "flash B " + std::to_string(batch) + " T " + std::to_string(time);
  probes.push_back({name + " forward", causal, [&pool, forward, scratch] { flash_forward(pool, forward, scratch); }});
  probes.push_back({name + " backward", 2.5 * causal, [&pool, backward, scratch] { flash_backward(pool, backward, scratch); }});
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = std::max(1, argc > 1 ? std::atoi(argv[1]) : hardware_threads());
  const int rounds = std::max(1, argc > 2 ? std::atoi(argv[2]) : 10);
  const char* what = argc > 3 ? argv[3] : "";
  ThreadPool pool(threads);
  Buffers buffers(threads);
  std::vector<Probe> probes;
  using Sizes = std::array<int64_t, 3>;
  if (std::strcmp(what, "flash") != 0) {
    for (auto [m, n, k] : {Sizes{4096, 1536, 512}, {4096, 512, 1536}, {4096, 512, 512}, {2048, 256, 256}, {2048, 768, 256}}) {
      add_gemm(probes, pool, buffers, ProductLayout::nt, m, n, k);
      add_gemm(probes, pool, buffers, ProductLayout::nn, m, n, k);
    }
    for (auto [m, n, k] : {Sizes{1536, 512, 4096}, {512, 512, 4096}, {256, 768, 2048}, {256, 256, 2048}}) {
      add_gemm(probes, pool, buffers, ProductLayout::tn, m, n, k);
    }
    add_gemm(probes, pool, buffers, ProductLayout::nt, 512, 512, 512);
  }
  if (std::strcmp(what, "gemm") != 0) {
    for (auto [batch, time] : {std::array<int64_t, 2>{2, 2048}, {8, 512}, {16, 256}}) {
      add_flash(probes, pool, buffers, batch, time);
    }
  }
  double peak = 0;
  for (int round = 0; round < rounds; ++round) {
    peak = std::max(peak, fma_peak_gflops(pool, 0.01));
    for (Probe& probe : probes) {
      const double start = seconds_now(threads);
      probe.run();
      probe.best = std::min(probe.best, seconds_now(threads) - start);
    }
  }
  std::printf("%s, %d threads, peak %.1f GFLOP/s\n", isa_name(), threads, peak);
  for (const Probe& probe : probes) {
    const double rate = probe.flops / probe.best * 1e-9;
    std::printf("%-28s %8.3f ms %7.1f GFLOP/s %5.1f %%\n", probe.name.c_str(), probe.best * 1e3, rate, 100 * rate / peak);
  }
}
