// The optimizer shared by n ranks against one process: the same bits, the bytes of spec §9, and state that any number of ranks
// can take up.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "backends/backends.h"
#include "base/error.h"
#include "comm/thread_ranks.h"
#include "model/named_bank.h"
#include "optim/optimizer.h"

namespace fairway {
namespace {

using Floats = std::vector<float>;

// Banks whose counts 2, 3, 5 no n > 1 divides but by padding, and a lone projection.
const std::vector<ParamInfo> kTable{{"qo", {5, 8, 8}, ParamRole::matrix},  {"token", {7, 6}, ParamRole::token},
                                    {"up", {3, 16, 8}, ParamRole::matrix}, {"gain", {}, ParamRole::scalar},
                                    {"kv", {2, 4, 8}, ParamRole::matrix},  {"scale", {13}, ParamRole::scalar},
                                    {"proj", {8, 4}, ParamRole::matrix}};

Recipe recipe_for(int64_t world, bool published = false) {
  Recipe recipe;
  if (published)
    recipe.optim.momentum_precision = recipe.optim.token_precision = recipe.optim.exchange_precision = Precision::bf16;
  recipe.train.emulated_world = world;
  recipe.optim.clip = 0.3;
  recipe.optim.matrix = {.lr = 0.02, .wd = 0.1, .row_norm = true};
  return recipe;
}

float gradient_at(int64_t step, int64_t rank, int64_t i) {
  return static_cast<float>(0.1 * std::sin(static_cast<double>(i * 7 + rank * 131 + step * 977 + 1)));
}

Floats floats(const Tensor& tensor) { return {tensor.as<float>(), tensor.as<float>() + tensor.numel()}; }

struct State {
  Floats values, optimizer;
};

// Steps [from, to) on one rank, beginning at `start` (the initial weights when empty). The state is rank 0's.
State train(const Recipe& recipe, Communicator& comm, int64_t from, int64_t to, const State& start = {}) {
  Queue queue(1);
  const auto executor = make_cpu_executor(queue);
  ParamStore params(kTable, ParamStore::Gradients::kept);
  Optimizer optimizer(recipe, params, *executor, comm);
  for (int64_t i = 0; i < params.flat_values().numel(); ++i) params.flat_values().as<float>()[i] = gradient_at(99, 0, i);
  if (!start.values.empty()) {
    std::memcpy(params.flat_values().data, start.values.data(), params.flat_values().spec.bytes());
    if (comm.root()) std::memcpy(optimizer.flat_state().data, start.optimizer.data(), optimizer.flat_state().spec.bytes());
    optimizer.share_state();
  }
  for (int64_t step = from; step < to; ++step) {
    for (int64_t rank = 0; rank < optimizer.local_ranks(); ++rank) {
      optimizer.begin_rank();
      const int64_t emulated = comm.rank() * optimizer.local_ranks() + rank;
      for (const ParamBank& bank : params.banks())
        for (int64_t i = 0; i < bank.grad.numel(); ++i) bank.grad.as<float>()[i] = gradient_at(step, emulated, i);
      optimizer.end_rank(rank);
    }
    optimizer.update({.learning_rate_scale = 0.9, .momentum = 0.95, .step = step + 1});
  }
  optimizer.gather_state();
  return {floats(params.flat_values()), floats(optimizer.flat_state())};
}

State train_ranks(const Recipe& recipe, int ranks, int64_t from, int64_t to, const State& start = {}) {
  std::vector<State> states(static_cast<size_t>(ranks));
  ThreadRanks(ranks).run(
      [&](Communicator& comm) { states[static_cast<size_t>(comm.rank())] = train(recipe, comm, from, to, start); });
  for (const State& state : states) EXPECT_EQ(state.values, states[0].values) << "ranks have different weights";
  return states[0];
}

void expect_same_on_any_number(const Recipe& recipe) {
  const State want = train(recipe, single_process(), 0, 3);
  for (const float value : want.values) ASSERT_TRUE(std::isfinite(value));
  for (int ranks : {2, 4, 8}) {
    const State have = train_ranks(recipe, ranks, 0, 3);
    EXPECT_EQ(have.values, want.values) << ranks;
    EXPECT_EQ(have.optimizer, want.optimizer) << ranks;
  }
}

TEST(Sharded, AnyNumberOfRanksGivesTheSameBits) { expect_same_on_any_number(recipe_for(8)); }

// Each of the published precisions alone, and all together.
TEST(Sharded, AnyNumberOfRanksGivesTheSameBitsInPublishedPrecisions) {
  const State floats = train(recipe_for(8), single_process(), 0, 3);
  for (Precision OptimRecipe::*key :
       {&OptimRecipe::momentum_precision, &OptimRecipe::token_precision, &OptimRecipe::exchange_precision}) {
    Recipe recipe = recipe_for(8);
    recipe.optim.*key = Precision::bf16;
    expect_same_on_any_number(recipe);
    EXPECT_NE(train(recipe, single_process(), 0, 3).values, floats.values) << "it makes a difference";
  }
  expect_same_on_any_number(recipe_for(8, true));
}

TEST(Sharded, AWorldThatIsNoPowerOfTwo) {
  for (bool published : {false, true}) {
    const Recipe recipe = recipe_for(6, published);
    const State want = train(recipe, single_process(), 0, 2);
    for (int ranks : {3, 6}) EXPECT_EQ(train_ranks(recipe, ranks, 0, 2).values, want.values) << ranks;
  }
}

void expect_state_goes_on(const Recipe& recipe) {
  const State want = train(recipe, single_process(), 0, 4);
  for (int before : {2, 4}) {
    const State half = train_ranks(recipe, before, 0, 2);
    for (int after : {2, 4}) EXPECT_EQ(train_ranks(recipe, after, 2, 4, half).values, want.values) << before << after;
    EXPECT_EQ(train(recipe, single_process(), 2, 4, half).values, want.values) << before;
  }
  const State half = train(recipe, single_process(), 0, 2);
  EXPECT_EQ(train_ranks(recipe, 4, 2, 4, half).values, want.values);
}

TEST(Sharded, StateGoesFromAnyNumberOfRanksToAnyOther) {
  expect_state_goes_on(recipe_for(4));
  expect_state_goes_on(recipe_for(4, true));
}

TEST(Sharded, RefusesRanksThatCannotShareTheWorld) {
  for (const auto& [world, ranks] : {std::pair{8, 3}, {8, 16}, {6, 2}}) {
    ThreadRanks(ranks).run([&, w = world, n = ranks](Communicator& comm) {
      ParamStore params(kTable, ParamStore::Gradients::kept);
      try {
        Queue queue(1);
        const auto executor = make_cpu_executor(queue);
        const Optimizer optimizer(recipe_for(w), params, *executor, comm);
        ADD_FAILURE() << n << " ranks shared a world of " << w;
      } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(n) + " processes"));
        EXPECT_THAT(error.what(), testing::HasSubstr("emulated_world = " + std::to_string(w)));
      }
    });
  }
}

// Bytes on the wire per rank and step: (n−1)/n of the padded banks each way, and twice that of the pack.
TEST(Sharded, TrafficEqualsTheArithmetic) {
  const ParamStore params(kTable, ParamStore::Gradients::kept);
  for (const auto& [n, published] : {std::pair{2, false}, {4, false}, {2, true}, {4, true}, {8, true}}) {
    const Recipe recipe = recipe_for(8, published);
    const int64_t element = published ? 2 : 4, packs = published ? 2 : 1;  // in bf16 the scalars travel apart, as floats
    const auto padded = [n = n](int64_t matrices, int64_t size) { return (matrices + n - 1) / n * n * size; };
    const int64_t banks = element * (padded(5, 64) + padded(3, 128) + padded(2, 32) +
                                     padded(recipe.optim.matrix.projection_slices, 32 / recipe.optim.matrix.projection_slices));
    const GradientLayout layout = gradient_layout(recipe, params, n);
    const StepTraffic want = step_traffic(layout, n);
    EXPECT_EQ(want.reduce_scatter, banks / n * (n - 1));
    EXPECT_EQ(want.all_gather, banks / n * (n - 1));
    EXPECT_GE(want.replicated, 2 * (element * 42 + 4 * (1 + 13)) / n * (n - 1));
    constexpr int64_t kSteps = 3;
    const auto counters = ThreadRanks(n).run([&](Communicator& comm) { train(recipe, comm, 0, kSteps); });
    for (const CommCounters& counted : counters) {
      EXPECT_EQ(counted.exchange.calls, kSteps * (4 + packs));        // four banks and the packs
      EXPECT_EQ(counted.all_gather.calls, kSteps * (4 + packs) + 4);  // and the momentum of each bank at the end
      EXPECT_EQ(counted.exchange.bytes, kSteps * (want.reduce_scatter + want.replicated / 2));
      EXPECT_EQ(counted.all_gather.bytes,
                kSteps * (want.all_gather + want.replicated / 2) + want.all_gather * 4 / element);  // as floats
      EXPECT_EQ(counted.all_reduce.calls + counted.broadcast.calls + counted.gather.calls, 0);
    }
  }
}

// With an emulated rank in each process matrices go to their owners one by one, without the padding, and the coefficients of
// all ranks are told.
TEST(Sharded, TrafficOfEarlySlices) {
  constexpr int kRanks = 8;
  constexpr int64_t kSteps = 3;
  const Recipe recipe = recipe_for(kRanks);
  const ParamStore params(kTable, ParamStore::Gradients::kept);
  const GradientLayout layout = gradient_layout(recipe, params, kRanks);
  const StepTraffic want = step_traffic(layout, kRanks);
  int64_t matrices = 0, bytes = 0;
  for (const ShardedBank& bank : layout.matrices) matrices += bank.shape[0], bytes += 4 * bank.shape.numel();
  const auto counters = ThreadRanks(kRanks).run([&](Communicator& comm) { train(recipe, comm, 0, kSteps); });
  int64_t sent = 0;
  for (const CommCounters& counted : counters) {
    EXPECT_EQ(counted.gather.calls, kSteps * matrices);
    EXPECT_EQ(counted.exchange.calls, kSteps);
    EXPECT_EQ(counted.exchange.bytes, kSteps * want.replicated / 2);
    EXPECT_EQ(counted.all_gather.calls, kSteps * 6 + 4);
    sent += counted.gather.bytes;
  }
  EXPECT_EQ(sent, kSteps * (kRanks - 1) * bytes);
}

// The last call that adds to a matrix's gradient is the one after which it sets out.
TEST(Sharded, SlicesSetOutAfterTheLastCallThatAddsToThem) {
  const ParamStore params(kTable, ParamStore::Gradients::kept);
  const GradientLayout layout = gradient_layout(recipe_for(2), params, 2);
  std::vector<EarlySlices::Bank> banks;
  for (const ShardedBank& place : layout.matrices) banks.push_back({&place, {}});
  Queue queue(1);
  const auto executor = make_cpu_executor(queue);
  const EarlySlices slices(banks, *executor, single_process());
  Program program;
  const auto writes = [&](const char* bank, int64_t slice) {
    program.slots.push_back({Slot::Kind::gradient, {bank_named(params, bank).number, slice}});
    program.values.push_back({.name = "gradient", .place = Value::Place::bound});
    program.values.back().slot = static_cast<int32_t>(program.slots.size() - 1);
    program.calls.emplace_back();
    program.calls.back().din = {kNoValue, static_cast<int32_t>(program.values.size() - 1)};
  };
  writes("up", 2);
  writes("qo", 4);
  writes("up", 0);
  writes("up", 2);  // a looped layer's first pass comes last
  writes("proj", -1);
  const auto finished = slices.finished_by(program);  // up is the largest: its matrices are 0, 1, 2; then qo's
  ASSERT_EQ(finished.size(), 5U);
  EXPECT_THAT(finished[0], testing::IsEmpty());
  EXPECT_THAT(finished[1], testing::ElementsAre(3 + 4));
  EXPECT_THAT(finished[2], testing::ElementsAre(0));
  EXPECT_THAT(finished[3], testing::ElementsAre(2));
  EXPECT_THAT(finished[4], testing::SizeIs(static_cast<size_t>(recipe_for(2).optim.matrix.projection_slices)));
}

TEST(Sharded, LargestBanksGoFirst) {
  const ParamStore params(kTable, ParamStore::Gradients::kept);
  const GradientLayout layout = gradient_layout(recipe_for(8), params, 4);
  std::vector<std::string> order;
  for (const ShardedBank& bank : layout.matrices) order.push_back(bank.bank->info.name);
  EXPECT_THAT(order, testing::ElementsAre("up", "qo", "kv", "proj"));
  EXPECT_EQ(layout.replicated.size(), 3U);
}

// The published model on eight ranks in bf16: 77.6 MB of padded banks, 67.9 MB each way, 2.4 MB replicated (spec §9).
TEST(Sharded, PublishedModelsBytes) {
  const Recipe recipe = load_recipe("pr1105", std::vector<std::string>{"optim.exchange_precision=bf16"});
  const ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  const StepTraffic traffic = step_traffic(gradient_layout(recipe, params, 8), 8);
  EXPECT_NEAR(static_cast<double>(traffic.reduce_scatter) * 1e-6, 67.9, 0.05);
  EXPECT_EQ(traffic.all_gather, traffic.reduce_scatter);
  EXPECT_NEAR(static_cast<double>(traffic.replicated) / 2 / 7 * 8 * 1e-6, 2.4, 0.1);
}

}  // namespace
}  // namespace fairway
