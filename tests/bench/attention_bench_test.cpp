#include "bench/attention_bench.h"

#include <gtest/gtest.h>

#include "backends/backends.h"
#include "bench/step_bench.h"

namespace fairway::bench {
namespace {

TEST(AttentionBench, TimesRowsAndDocuments) {
  const Recipe recipe = small_recipe(load_recipe("smoke", {}), 2, 64);
  Queue queue(2), check(2);
  const auto executor = make_executor(Backend::cpu, queue), truth = make_executor(Backend::ref, check);
  const AttentionBench b = bench_attention(recipe, 0.001, *executor, *truth, queue.pool());
  ASSERT_EQ(b.lines.size(), 5U);
  EXPECT_EQ(b.lines[0].documents, "rows of 64");
  EXPECT_EQ(b.lines[0].keys, 32.5);
  EXPECT_EQ(b.lines[3].documents, "of 48");
  // Two of 48 and one of 32.
  EXPECT_NEAR(b.lines[3].keys, (2 * 48 * 24.5 + 32 * 16.5) / 128, 1e-9);
  EXPECT_EQ(b.lines[4].keys, 64.5);
  for (const AttentionBench::Line& line : b.lines) {
    EXPECT_GT(line.forward.median, 0) << line.documents;
    EXPECT_GT(line.backward.median, 0) << line.documents;
    EXPECT_GE(line.forward.samples, 3);
  }
}

}  // namespace
}  // namespace fairway::bench
