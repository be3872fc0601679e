// Hessians of one rank and of several have the same bits, whatever the number of batches.
#include "backends/backends.h"
#include "comm/thread_ranks.h"
#include "data/scratch_folder.h"
#include "pack/calibrate.h"
#include "pack/naive_hessians.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;

struct Known {
  double batches = 0;
  std::map<std::string, std::vector<double>> values;
  bool operator==(const Known&) const = default;
};

Known known(const HessianStore& store) {
  Known out{store.batches(), {}};
  for (const auto& [point, hessian] : store.all()) out.values[point] = hessian.values;
  return out;
}

template <class Body>
void expect_same_for_any_ranks(const Body& body) {
  const Known want = body(single_process());
  ASSERT_FALSE(want.values.empty());
  for (int ranks : {2, 3, 4, 9}) {
    std::vector<Known> have(static_cast<size_t>(ranks));
    ThreadRanks(ranks).run([&](Communicator& comm) { have[static_cast<size_t>(comm.rank())] = body(comm); });
    for (const Known& of_rank : have) EXPECT_TRUE(of_rank == want) << ranks << " ranks";
  }
}

TEST(SharedCalibration, OfSelfMadeText) {
  Recipe recipe = shrunk("smoke");
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  randomize(params);
  for (const auto& [length, rows] : {std::pair{400, 11}, {33, 5}}) {
    recipe.data.seq_len = length;
    SCOPED_TRACE(rows);
    expect_same_for_any_ranks([&, n = rows * length](Communicator& comm) {
      Queue queue(1);
      const auto executor = make_executor(Backend::cpu, queue);
      std::vector<std::string> problems;
      return known(calibrate_self({recipe, params, {}, *executor, queue, {}, comm}, {.tokens = n, .seed = 5}, problems));
    });
  }
}

TEST(SharedCalibration, OfTrainingData) {
  Recipe recipe = shrunk("pr726");
  recipe.model.vocab = 1024;
  ParamStore params(parameter_table(recipe), ParamStore::Gradients::none);
  randomize(params);
  ScratchFolder folder;
  write_numbered_shards(folder.path(), {3000, 2100}, 37);
  const data::ShardSet shards = data::ShardSet::open_train(folder.path());
  for (int64_t batches : {1, 3, 16}) {
    SCOPED_TRACE(batches);
    expect_same_for_any_ranks([&](Communicator& comm) {
      Queue queue(1);
      const auto executor = make_executor(Backend::cpu, queue);
      data::Loader loader(shards, {.length = 16, .rows = 5, .world = 1, .seed = 3}, {});
      std::vector<std::string> problems;
      return known(calibrate_train({recipe, params, {}, *executor, queue, {}, comm}, loader, batches, problems));
    });
  }
}

}  // namespace
}  // namespace fairway::calibrate_test
