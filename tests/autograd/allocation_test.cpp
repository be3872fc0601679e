// After a first step nothing allocates, on any thread: this binary counts every call of the C allocator (operator new ends
// there too) while a flag is up.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>

#include "backends/backends.h"
#include "bench/step_bench.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FAIRWAY_OWN_ALLOCATOR 0  // the sanitizer's allocator cannot be replaced
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FAIRWAY_OWN_ALLOCATOR 0
#endif
#endif
#if !defined(FAIRWAY_OWN_ALLOCATOR) && defined(__GLIBC__)
#define FAIRWAY_OWN_ALLOCATOR 1
#endif

namespace {
std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
}  // namespace

#if FAIRWAY_OWN_ALLOCATOR
namespace {
void note() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  note();
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? 12 : 0;  // ENOMEM
}
}
#endif

namespace fairway {
namespace {

class Allocation : public testing::Test {
 protected:
  void SetUp() override {
#if !FAIRWAY_OWN_ALLOCATOR
    GTEST_SKIP() << "the allocator of this build cannot be counted";
#endif
  }
};

TEST_F(Allocation, IsCounted) {
  counting = true;
  void* volatile plain = std::malloc(40);  // volatile: neither may be optimised away
  int* volatile object = new int(1);
  counting = false;
  std::free(plain);
  delete object;
  EXPECT_EQ(allocations.exchange(0), 2);
}

TEST_F(Allocation, NoneAfterTheFirstStepOfAStage) {
  Recipe recipe = load_recipe("smoke");
  recipe.average.swa = {.every = 1, .lr_mul_below = 1};
  for (const AverageUse use : {AverageUse::ema, AverageUse::swa}) {
    recipe.average.use = use;
    recipe.average.swa.enabled = use == AverageUse::swa;
    Queue queue(2);
    const auto executor = make_cpu_executor(queue);
    Trainer trainer(recipe, micro_batch_geometry(recipe), *executor);
    trainer.initialize(1, queue.pool());
    std::vector<int32_t> tokens(static_cast<size_t>(recipe.train.micro_batch_tokens + 1));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 512);
    const Spec spec{{recipe.train.micro_batch_tokens}, DType::i32};
    const std::function<MicroBatch()> next = [&] {
      return MicroBatch{make_view(tokens.data(), spec), make_view(tokens.data() + 1, spec), {}};
    };
    int64_t step = 0;
    for (ModelStage stage : {ModelStage{}, ModelStage{true, false}, ModelStage{false, true}, ModelStage{true, true}}) {
      const auto run = [&] { return trainer.step(next, {.learning_rate_scale = 0.5, .momentum = 0.9, .step = ++step}, stage); };
      run();
      allocations = 0;
      counting = true;
      double loss = 0;
      for (int i = 0; i < 3; ++i) loss = run().loss;
      counting = false;
      EXPECT_EQ(allocations.load(), 0) << "looped " << stage.looped << ", fake quantization " << stage.fake_quant;
      EXPECT_TRUE(std::isfinite(loss));
    }
  }
}

}  // namespace
}  // namespace fairway
