// Online accumulation: when it runs, how old sums fade, and how it goes on from its file.
#include "pack/online.h"

#include <fstream>

#include "backends/backends.h"
#include "base/error.h"
#include "base/file.h"
#include "data/scratch_folder.h"
#include "model/safetensors.h"
#include "pack/hessian_file.h"
#include "pack/naive_hessians.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;

class Online : public testing::Test {
 protected:
  Online() {
    recipe_.model.vocab = 1024;
    params_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::kept);
    randomize(*params_);
    write_numbered_shards(folder_.path(), {3000, 2100}, 37);
    shards_ = std::make_unique<data::ShardSet>(data::ShardSet::open_train(folder_.path()));
  }
  std::unique_ptr<data::Loader> loader() {
    return std::make_unique<data::Loader>(*shards_, data::SamplerOptions{.length = 16, .rows = 2, .world = 1, .seed = 3},
                                          data::LoaderOptions{});
  }
  // The sums of the loader's batches 1, 2, … (0 tells the form), the latest counting 1 and each before it half of the next.
  Sums faded(int passes) {
    const auto batches = loader();
    batches->next();
    Sums total;
    for (int pass = 0; pass < passes; ++pass) {
      for (auto& [point, sum] : total)
        for (double& value : sum) value *= 0.5;
      const Tensor tokens = batches->next().tokens;
      for (const auto& [point, sum] :
           sums_of(recipe_, *params_, {}, {tokens.as<int32_t>(), static_cast<size_t>(tokens.numel())}, 16)) {
        total[point].resize(sum.size());
        for (size_t i = 0; i < sum.size(); ++i) total[point][i] += sum[i];
      }
    }
    return total;
  }

  Recipe recipe_ = shrunk("pr726");
  std::unique_ptr<ParamStore> params_;
  ScratchFolder folder_;
  std::unique_ptr<data::ShardSet> shards_;
  Queue queue_{1};
  std::unique_ptr<Executor> executor_ = make_executor(Backend::cpu, queue_);
  OnlineOptions options_{.every = 5, .lr_mul_below = 0.8, .keep = 0.5};
};

TEST_F(Online, RunsEverySoManyStepsOnceTheRateFallsAndFades) {
  const auto batches = loader();
  OnlineCalibration online(recipe_, *params_, *batches, *executor_, options_);
  for (int64_t step = 1; step <= 9; ++step) online.after_step(step, step < 6 ? 1.0 : 0.8, false);
  EXPECT_TRUE(online.hessians().empty());
  for (int64_t step = 10; step <= 24; ++step) online.after_step(step, 0.79, false);
  EXPECT_DOUBLE_EQ(online.hessians().batches(), 1.75);  // steps 10, 15 and 20
  expect_near(online.hessians(), faded(3), 1, true);
}

TEST_F(Online, GoesOnFromItsFile) {
  const std::filesystem::path path = folder_ / "hessians.safetensors";
  {
    const auto batches = loader();
    OnlineCalibration online(recipe_, *params_, *batches, *executor_, options_);
    online.save(path, 4);
    EXPECT_FALSE(std::filesystem::exists(path)) << "nothing was gathered yet";
    online.after_step(5, 0.5, false);
    online.after_step(10, 0.5, false);
    online.save(path, 12);
  }
  const auto batches = loader();
  OnlineCalibration resumed(recipe_, *params_, *batches, *executor_, options_);
  resumed.load(path);
  resumed.after_step(10, 0.5, false);  // seen already: the checkpoint was older than the file
  EXPECT_DOUBLE_EQ(resumed.hessians().batches(), 1.5);
  resumed.after_step(15, 0.5, false);
  expect_near(resumed.hessians(), faded(3), 1, true);
  resumed.save(path, 15);
  HessianStore read(queue_);
  EXPECT_EQ(load_hessians(path, recipe_, read).step, 15);
  EXPECT_TRUE(read.finish().empty());
  expect_near(read, faded(3), 1 / 1.75);
}

TEST_F(Online, FilesThatDoNotFitAreRefused) {
  const std::filesystem::path path = folder_ / "hessians.safetensors";
  const auto batches = loader();
  OnlineCalibration online(recipe_, *params_, *batches, *executor_, options_);
  online.after_step(5, 0.5, false);
  online.save(path, 5);
  const auto refuses = [&](const Recipe& recipe, const std::string& says) {
    HessianStore store(queue_);
    try {
      load_hessians(path, recipe, store);
      ADD_FAILURE() << "not refused: " << says;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
    }
  };
  Recipe other = recipe_;
  other.optim.clip = 0.123;
  refuses(other, "a different recipe");
  const Safetensors whole = Safetensors::read(path);
  std::vector<NamedTensor> tensors;
  for (const auto& [point, tensor] : whole.tensors()) tensors.push_back({point, tensor});
  auto metadata = whole.metadata();
  metadata["batches"] = "nan";
  save_safetensors(path, tensors, metadata);
  refuses(recipe_, "batches");
  tensors[3].tensor = tensors[3].tensor.slice(0).reshaped({1});
  save_safetensors(path, tensors, whole.metadata());
  refuses(recipe_, tensors[3].name);
  tensors.erase(tensors.begin() + 3);
  save_safetensors(path, tensors, whole.metadata());
  refuses(recipe_, "layer");
}

}  // namespace
}  // namespace fairway::calibrate_test
