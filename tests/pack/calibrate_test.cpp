// Hessians of self-made text and of training data are XᵀX of the model's own observe points.
#include "pack/calibrate.h"

#include "backends/backends.h"
#include "data/scratch_folder.h"
#include "generate/sample_rows.h"
#include "pack/naive_hessians.h"

namespace fairway::calibrate_test {
namespace {

using generate_test::randomize;
using generate_test::shrunk;

class Calibrating : public testing::Test {
 protected:
  void use(std::string_view name, int64_t length) {
    recipe_ = shrunk(name);
    recipe_.data.seq_len = length;
    params_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::none);
    randomize(*params_);
  }
  CalibrationModel model(ModelStage stage = {}) { return {recipe_, *params_, stage, *executor_, queue_}; }

  Recipe recipe_;
  std::unique_ptr<ParamStore> params_;
  Queue queue_{2};
  std::unique_ptr<Executor> executor_ = make_executor(Backend::cpu, queue_);
  std::vector<std::string> problems_;
};

TEST_F(Calibrating, SelfSeesAllButTheLastTokenOfItsOwnText) {
  constexpr int64_t kRows = 6, kLength = 17;
  for (const auto& [name, looped] : {std::pair{"pr1105", false}, std::pair{"pr1584", true}}) {
    SCOPED_TRACE(name);
    use(name, kLength);
    const HessianStore hessians =
        calibrate_self(model({.looped = looped}), {.tokens = kRows * kLength + 3, .seed = 11}, problems_);
    EXPECT_TRUE(problems_.empty());
    Decoder decoder(recipe_, *params_, kRows, kLength, {.looped = looped}, *executor_);
    std::vector<int32_t> text(kRows * kLength), seen;
    sample_rows(decoder, {.seed = 11, .vocab = recipe_.model.vocab}, queue_.pool(), text);
    for (int64_t row = 0; row < kRows; ++row)
      seen.insert(seen.end(), text.begin() + row * kLength, text.begin() + (row + 1) * kLength - 1);
    expect_near(hessians, sums_of(recipe_, *params_, {.looped = looped}, seen, kLength - 1), 1);
    EXPECT_EQ(hessians.all().size(), static_cast<size_t>(4 * recipe_.model.layers + 1));
  }
}

TEST_F(Calibrating, SelfMakesWholeBatchesAndTellsProgress) {
  use("smoke", 600);
  std::map<std::string, std::pair<int64_t, int64_t>> last;
  CalibrationModel with_progress = model();
  with_progress.progress = [&](const char* what, int64_t done, int64_t total) { last[what] = {done, total}; };
  const HessianStore hessians =
      calibrate_self(with_progress, {.tokens = 12 * 600, .longest_row = 600, .begin_with_bos = true}, problems_);
  EXPECT_EQ(hessians.batches(), 2);  // six rows of 599 tokens fit into a pass
  EXPECT_EQ(last["calibration text"], std::pair(int64_t{7200}, int64_t{7200}));
  EXPECT_EQ(last["Hessians"], std::pair(int64_t{12}, int64_t{12}));
}

TEST_F(Calibrating, ItsTextIsKeptAndBeginsLikeShorterRows) {
  use("smoke", 40);
  OwnText text;
  calibrate_self(model(), {.tokens = 5 * 24, .longest_row = 24, .seed = 3}, problems_, &text);
  EXPECT_EQ(text.length, 24);
  ASSERT_EQ(text.tokens.size(), 5U * 24U);
  const std::vector<int32_t> shorter = calibration_text(model(), {.seed = 3}, 3, 9);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t t = 0; t < 9; ++t)
      EXPECT_EQ(shorter[static_cast<size_t>(row * 9 + t)], text.tokens[static_cast<size_t>(row * 24 + t)]) << row << ' ' << t;
}

TEST_F(Calibrating, TrainSeesTheLoadersBatches) {
  use("pr726", 16);
  recipe_.model.vocab = 1024;
  params_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::none);
  randomize(*params_);
  ScratchFolder folder;
  write_numbered_shards(folder.path(), {3000, 2100}, 37);
  const data::ShardSet shards = data::ShardSet::open_train(folder.path());
  const data::SamplerOptions sampling{.length = 16, .rows = 5, .world = 1, .seed = 3};
  data::Loader loader(shards, sampling, {}), again(shards, sampling, {});
  const HessianStore hessians = calibrate_train(model(), loader, 3, problems_);
  EXPECT_EQ(hessians.batches(), 3);
  std::vector<int32_t> tokens;
  for (int i = 0; i < 3; ++i) {
    const Tensor batch = again.next().tokens;
    tokens.insert(tokens.end(), batch.as<int32_t>(), batch.as<int32_t>() + batch.numel());
  }
  expect_near(hessians, sums_of(recipe_, *params_, {}, tokens, 16), 1.0 / 3);
}

TEST_F(Calibrating, TrainTakesPackedDocuments) {
  use("best", 64);
  recipe_.model.vocab = 1024;
  params_ = std::make_unique<ParamStore>(parameter_table(recipe_), ParamStore::Gradients::none);
  randomize(*params_);
  ScratchFolder folder;
  write_numbered_shards(folder.path(), {3000, 2100}, 37);
  const data::ShardSet shards = data::ShardSet::open_train(folder.path());
  data::Loader loader(shards, {.kind = SamplerKind::docpack, .length = 96, .rows = 1, .world = 1, .max_segment = 20},
                      {.vocab = 1024});
  const HessianStore hessians = calibrate_train(model(), loader, 2, problems_);
  EXPECT_TRUE(problems_.empty());
  EXPECT_EQ(hessians.all().size(), static_cast<size_t>(4 * recipe_.model.layers + 1));
}

}  // namespace
}  // namespace fairway::calibrate_test
