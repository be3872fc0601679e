#include "ops/cuda/product_time.h"

#include "ops/cuda/cast.h"
#include "ops/cuda/gemm.h"

namespace fairway::cuda {
namespace {

constexpr int kUntimed = 3;

Buffer upload(Context& context, const float* host, int64_t count, bool bf16) {
  Buffer floats(static_cast<size_t>(count) * sizeof(float));
  check(cudaMemcpyAsync(floats.data(), host, floats.bytes(), cudaMemcpyHostToDevice, context.stream()), "cudaMemcpyAsync");
  if (!bf16) return floats;
  Buffer halves(static_cast<size_t>(count) * size_of(DType::bf16));
  cast_to_bf16(context, floats.data(), halves.data(), count);
  context.wait();  // `floats` ends here
  return halves;
}

std::vector<float> download(Context& context, const Buffer& from, int64_t count, bool bf16) {
  std::vector<float> host(static_cast<size_t>(count));
  Buffer widened;
  const std::byte* floats = from.data();
  if (bf16) {
    widened = Buffer(host.size() * sizeof(float));
    cast_to_float(context, from.data(), widened.data(), count);
    floats = widened.data();
  }
  check(cudaMemcpyAsync(host.data(), floats, host.size() * sizeof(float), cudaMemcpyDeviceToHost, context.stream()),
        "cudaMemcpyAsync");
  context.wait();
  return host;
}

// Two marks in the stream.
class Stopwatch {
 public:
  explicit Stopwatch(Context& context) : context_(context) {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  template <class Work>
  double seconds_of(Work&& work) {
    check(cudaEventRecord(begin_, context_.stream()), "cudaEventRecord");
    work();
    check(cudaEventRecord(end_, context_.stream()), "cudaEventRecord");
    context_.wait();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  Context& context_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

TimedProduct time_product(const ProductRequest& r, double seconds, int least) {
  ThreadPool pool(1);
  Context context(pool);
  const DType in = r.bf16_in ? DType::bf16 : DType::f32, out = r.bf16_out ? DType::bf16 : DType::f32;
  const Buffer a = upload(context, r.a, r.m * r.k, r.bf16_in), b = upload(context, r.b, r.n * r.k, r.bf16_in);
  const Buffer d(static_cast<size_t>(r.m * r.n) * size_of(out));
  const Product product{
      .layout = r.layout, .m = r.m, .n = r.n, .k = r.k, .in = in, .out = out, .a = a.data(), .b = b.data(), .d = d.data()};
  const auto run = [&] { context.gemms().run(product, context.stream()); };
  for (int i = 0; i < kUntimed; ++i) run();
  TimedProduct timed{.result = download(context, d, r.m * r.n, r.bf16_out)};
  Stopwatch watch(context);
  for (double spent = 0; spent < seconds || static_cast<int>(timed.seconds.size()) < least;) {
    timed.seconds.push_back(watch.seconds_of(run));
    spent += timed.seconds.back();
  }
  return timed;
}

}  // namespace fairway::cuda
