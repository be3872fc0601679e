#include "bench/adapters_bench.h"

#include <gtest/gtest.h>

#include "backends/backends.h"

namespace fairway::bench {
namespace {

TEST(AdaptersBench, TimesWindowsUpToTheContext) {
  Recipe recipe = load_recipe("smoke", {});
  recipe.score.context = 64;
  recipe.score.lora.chunk = 16;
  recipe.score.lora.rank = 4;
  Queue queue(2);
  const auto executor = make_executor(Backend::cpu, queue);
  const AdaptersBench b = bench_adapters(recipe, 3, 0.01, *executor, queue.pool());
  ASSERT_EQ(b.lines.size(), 2U);  // one of a quarter of the context would be a chunk alone
  EXPECT_EQ(b.lines[0].window, 64);
  EXPECT_EQ(b.lines[1].window, 32);
  for (const AdaptersBench::Line& line : b.lines) EXPECT_GT(line.targets_per_second, 0);
  bool adapters = false;
  for (const OpLine& line : b.ops) adapters |= line.name == "low_rank_add'" && line.seconds > 0;
  EXPECT_TRUE(adapters);
}

}  // namespace
}  // namespace fairway::bench
