// Row kernels at the sizes of pr1105 beside a copy of as many bytes: what the engine runs, and attempts. Each is first compared
// with the engine's kernels in float on the same numbers, which are others: what is off is the rounding to bf16, about 2e-3.
//   lab/build rows && build/lab/rows
#include <cstdio>
#include <functional>
#include <string>

#include "lab/lab.cuh"
#include "ops/cuda/cuda.h"
#include "ops/cuda/head_rows.cuh"
#include "ops/cuda/sm90/mix_rows.cuh"

using namespace fairway;
using cuda::bf16;

namespace {

constexpr int64_t kRows = 98304, kLength = 2048, kWide = 512, kNarrow = 256, kBlock = 1024;

__global__ void copy_kernel(const uint4* from, uint4* to, int64_t count) {
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}

Tensor part(const Tensor& block, int64_t column, int64_t width) {
  Tensor out = block;
  out.data += static_cast<size_t>(column) * size_of(block.spec.dtype);
  out.spec.shape = {block.rows(), width};
  out.pitch = static_cast<int32_t>(block.cols());
  return out;
}
const bf16* at(const Tensor& t) { return reinterpret_cast<const bf16*>(t.data); }
bf16* to(const Tensor& t) { return reinterpret_cast<bf16*>(t.data); }
float* number(const Tensor& t) { return reinterpret_cast<float*>(t.data); }

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, power = 0;
  for (size_t i = 0; i < b.size(); ++i) error += double(a[i] - b[i]) * (a[i] - b[i]), power += double(b[i]) * b[i];
  return std::sqrt(error / power);
}
std::vector<float> floats_of(const lab::Array& a) {
  std::vector<float> out(a.buffer.bytes() / 4);
  cudaMemcpy(out.data(), a.buffer.data(), a.buffer.bytes(), cudaMemcpyDeviceToHost);
  return out;
}

lab::Array widened(const lab::Array& halves) {
  lab::Array out(halves.tensor.spec.shape, DType::f32);
  out.set(halves.floats());
  return out;
}

struct Bench {
  lab::Lab lab;
  lab::Array from = lab.random({kRows, kBlock}, 1), target{{kRows, kBlock}, DType::bf16};
  int processors = lab.context.processors();

  double copy_seconds(double bytes) {  // of as many bytes read and written together
    const auto count = static_cast<int64_t>(bytes / 2 / 16);
    return lab.time([&] {
      for (int64_t left = count; left > 0; left -= kRows * kBlock / 8)
        copy_kernel<<<processors * 8, 256, 0, lab.context.stream()>>>(reinterpret_cast<const uint4*>(from.buffer.data()),
                                                                      reinterpret_cast<uint4*>(target.buffer.data()),
                                                                      std::min(left, kRows * kBlock / 8));
    });
  }
  void run(const std::string& name, double bytes, const std::function<void()>& body,
           const std::function<double()>& error = {}) {
    body();
    cuda::check(cudaStreamSynchronize(lab.context.stream()), name.c_str());
    const double off = error ? error() : 0;
    const double seconds = lab.time(body), copied = copy_seconds(bytes);
    std::printf("%-44s %7.1f us  %5.2f TB/s  %3.0f %% of copy (%.1f us)  off by %.1e\n", name.c_str(), seconds * 1e6,
                bytes / seconds * 1e-12, 100 * copied / seconds, copied * 1e6, off);
    std::fflush(stdout);
  }
};

lab::Array random_floats(lab::Lab&, Shape shape, unsigned seed, float low, float high) {
  lab::Array out(shape, DType::f32);
  std::mt19937 generator(seed);
  std::vector<float> values(out.buffer.bytes() / 4);
  for (float& x : values) x = low + (high - low) * float(generator() % 65536) / 65536;
  out.set(values);
  return out;
}

void rope(Bench& b) {
  lab::Array qkv = b.lab.random({kRows, kBlock}, 2), gain = random_floats(b.lab, {8}, 3, 0.5f, 2),
             angles = random_floats(b.lab, {kLength, 16}, 4, -1, 1);
  lab::Array q({kRows, kWide}, DType::bf16), k({kRows, kNarrow}, DType::bf16), q2({kRows, kWide}, DType::bf16),
      k2({kRows, kNarrow}, DType::bf16);
  lab::Array rq({kRows, 8}, DType::f32), rk({kRows, 4}, DType::f32), rq2({kRows, 8}, DType::f32), rk2({kRows, 4}, DType::f32);
  const QkNormRope op{.row_length = kLength, .head_dim = 64};
  const Tensor qin = part(qkv.tensor, 0, kWide), kin = part(qkv.tensor, kWide, kNarrow);
  const double bytes = 2.0 * kRows * (kWide + kNarrow) * 2;
  b.run("rope forward, engine", bytes, [&] {
    cuda::forward(op, {{qin, kin, gain.tensor, angles.tensor}, {q.tensor, k.tensor}, {rq.tensor, rk.tensor}, {}, &b.lab.queue});
  });
  lab::Array wide = widened(qkv), fq({kRows, kWide}, DType::f32), fk({kRows, kNarrow}, DType::f32), frq({kRows, 8}, DType::f32),
             frk({kRows, 4}, DType::f32);
  const QkNormRope::In wide_in{part(wide.tensor, 0, kWide), part(wide.tensor, kWide, kNarrow), gain.tensor, angles.tensor};
  cuda::forward(op, {wide_in, {fq.tensor, fk.tensor}, {frq.tensor, frk.tensor}, {}, &b.lab.queue});
  cuda::RopeRows a{at(qin),
                   at(kin),
                   number(rq.tensor),
                   number(rk.tensor),
                   number(gain.tensor),
                   number(angles.tensor),
                   kRows,
                   kLength,
                   kBlock,
                   kBlock,
                   16,
                   static_cast<float>(op.eps)};
  const auto check = [&] {
    return std::max({difference(q2.floats(), floats_of(fq)), difference(k2.floats(), floats_of(fk)),
                     difference(floats_of(rq2), floats_of(frq)), difference(floats_of(rk2), floats_of(frk))});
  };
  const auto rows_grid = static_cast<unsigned>(kRows / cuda::kWarps);
  b.run(
      "rope forward by rows", bytes,
      [&] {
        cuda::rope_rows_forward<2, 1><<<rows_grid, cuda::kThreads, 0, b.lab.context.stream()>>>(
            a, to(q2.tensor), to(k2.tensor), number(rq2.tensor), number(rk2.tensor));
      },
      check);
  lab::Array gq = b.lab.random({kRows, kWide}, 5), gk = b.lab.random({kRows, kNarrow}, 6), d({kRows, kBlock}, DType::bf16),
             d2({kRows, kBlock}, DType::bf16);
  lab::Array dgain({8}, DType::f32), dgain2({8}, DType::f32);
  const double back = 3.0 * kRows * (kWide + kNarrow) * 2;
  lab::Array fgq = widened(gq), fgk = widened(gk), fd({kRows, kBlock}, DType::f32), fdgain({8}, DType::f32);
  cuda::backward(op, {wide_in,
                      {fq.tensor, fk.tensor},
                      {frq.tensor, frk.tensor},
                      {fgq.tensor, fgk.tensor},
                      {part(fd.tensor, 0, kWide), part(fd.tensor, kWide, kNarrow), fdgain.tensor, {}},
                      {},
                      &b.lab.queue});
  b.run("rope backward, engine", back, [&] {
    cuda::backward(op, {{qin, kin, gain.tensor, angles.tensor},
                        {q.tensor, k.tensor},
                        {rq.tensor, rk.tensor},
                        {gq.tensor, gk.tensor},
                        {part(d.tensor, 0, kWide), part(d.tensor, kWide, kNarrow), dgain.tensor, {}},
                        {},
                        &b.lab.queue});
  });
  for (int blocks : {1, 2}) {
    b.run(
        "rope backward by rows, blocks of an SM " + std::to_string(blocks), back,
        [&] {
          cuda::Scratch scratch(&b.lab.queue);
          const int grid = blocks * b.processors;
          const cuda::Partials partials{scratch.take<float>(grid * 8), grid, 8};
          cuda::rope_rows_backward<2, 1><<<grid, cuda::kThreads, 0, b.lab.context.stream()>>>(
              a, at(gq.tensor), at(gk.tensor), cuda::RopeRowGradients{to(d2.tensor), to(d2.tensor) + kWide, kBlock, kBlock},
              partials);
          cuda::add_columns(scratch, partials, {{dgain2.tensor, 8}});
        },
        [&] { return std::max(difference(d2.floats(), floats_of(fd)), difference(floats_of(dgain2), floats_of(fdgain))); });
  }
}

template <int Warps, int Stages>
void mix_attempt(Bench& b, const cuda::MixRows& a, double bytes, const Tensor& dmix, const std::function<void()>& reset,
                 const std::function<double()>& check) {
  const auto kernel = cuda::mix_rows_backward<Warps, Stages>;
  const int shared = sizeof(cuda::MixShared<Warps, Stages>);
  cuda::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), "shared memory");
  int fit = 0;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, kernel, 32 * Warps, shared);
  const auto run = [&] {
    cuda::Scratch scratch(&b.lab.queue);
    const int grid = fit * b.processors;
    const cuda::Partials partials{scratch.take<float>(grid * 2 * kWide), grid, 2 * kWide};
    kernel<<<grid, 32 * Warps, shared, b.lab.context.stream()>>>(a, partials);
    cuda::add_columns(scratch, partials, {{dmix, 2 * kWide}});
  };
  reset();
  run();
  cuda::check(cudaStreamSynchronize(b.lab.context.stream()), "mix");
  const double off = check();
  b.run("mix backward, bulk copies, " + std::to_string(Warps) + " warps, " + std::to_string(Stages) + " stages, " +
            std::to_string(fit) + " blocks",
        bytes, run, [&] { return off; });
}

void mix(Bench& b) {
  lab::Array x = b.lab.random({kRows, kWide}, 10), x0 = b.lab.random({kRows, kWide}, 11), g = b.lab.random({kRows, kWide}, 12),
             gm = b.lab.random({kRows, kWide}, 13);
  lab::Array mixed({kRows, kWide}, DType::bf16), normed({kRows, kWide}, DType::bf16), rstd({kRows}, DType::f32),
      weights = random_floats(b.lab, {2, kWide}, 14, -1, 1);
  lab::Array dx({kRows, kWide}, DType::bf16), dx2({kRows, kWide}, DType::bf16), dx0({kRows, kWide}, DType::bf16),
      dx02({kRows, kWide}, DType::bf16), dmix({2, kWide}, DType::f32), dmix2({2, kWide}, DType::f32);
  const MixNorm op{.scale = 0.5};
  b.run("mix forward, engine", 4.0 * kRows * kWide * 2, [&] {
    cuda::forward(op, {{x.tensor, x0.tensor, weights.tensor}, {mixed.tensor, normed.tensor}, {rstd.tensor}, {}, &b.lab.queue});
  });
  Tensor added = dx0.tensor;
  added.accumulate = true;
  const double bytes = 7.0 * kRows * kWide * 2;
  const auto engine = [&] {
    cuda::backward(op, {{x.tensor, x0.tensor, weights.tensor},
                        {mixed.tensor, normed.tensor},
                        {rstd.tensor},
                        {gm.tensor, g.tensor},
                        {dx.tensor, added, dmix.tensor},
                        {},
                        &b.lab.queue});
  };
  b.run("mix backward, engine", bytes, engine);
  lab::Array fx = widened(x), fx0 = widened(x0), fg = widened(g), fgm = widened(gm), fmixed({kRows, kWide}, DType::f32),
             fnormed({kRows, kWide}, DType::f32), frstd({kRows}, DType::f32), fdx({kRows, kWide}, DType::f32),
             fdx0({kRows, kWide}, DType::f32);
  const MixNorm::In wide_in{fx.tensor, fx0.tensor, weights.tensor};
  cuda::forward(op, {wide_in, {fmixed.tensor, fnormed.tensor}, {frstd.tensor}, {}, &b.lab.queue});
  cuda::backward(op, {wide_in,
                      {fmixed.tensor, fnormed.tensor},
                      {frstd.tensor},
                      {fgm.tensor, fg.tensor},
                      {fdx.tensor, fdx0.tensor, dmix.tensor},
                      {},
                      &b.lab.queue});
  cuda::check(cudaStreamSynchronize(b.lab.context.stream()), "mix");
  const std::vector<float> want0 = floats_of(fdx0), want = floats_of(fdx), sums = floats_of(dmix);
  const cuda::MixRows a{at(x.tensor),
                        at(x0.tensor),
                        at(gm.tensor),
                        at(g.tensor),
                        number(weights.tensor),
                        number(rstd.tensor),
                        to(dx2.tensor),
                        to(dx02.tensor),
                        false,
                        true,
                        kRows,
                        0.5f};
  const auto reset = [&] { cudaMemset(dx02.buffer.data(), 0, dx02.buffer.bytes()); };
  const auto check = [&] {
    return std::max({difference(dx2.floats(), want), difference(dx02.floats(), want0), difference(floats_of(dmix2), sums)});
  };
  mix_attempt<4, 2>(b, a, bytes, dmix2.tensor, reset, check);
  mix_attempt<4, 3>(b, a, bytes, dmix2.tensor, reset, check);
  mix_attempt<8, 1>(b, a, bytes, dmix2.tensor, reset, check);
  mix_attempt<8, 2>(b, a, bytes, dmix2.tensor, reset, check);
  mix_attempt<8, 3>(b, a, bytes, dmix2.tensor, reset, check);
  mix_attempt<16, 1>(b, a, bytes, dmix2.tensor, reset, check);
}

}  // namespace

int main() {
  Bench b;
  mix(b);
  rope(b);
}
