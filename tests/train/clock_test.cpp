// The clock of a run, by a made-up one: whatever steps, checkpoints and validations take within what was measured before them,
// training ends inside its budget, and everything but validation is counted.
#include <gmock/gmock.h>

#include <csignal>

#include "backends/backends.h"
#include "base/rng.h"
#include "data/scratch_folder.h"
#include "optim/schedule.h"
#include "train/loader_settings.h"
#include "train/loop.h"

namespace fairway {
namespace {

// Seconds that things take: each within what those before it let foresee.
struct MadeUpTimes {
  explicit MadeUpTimes(uint64_t seed) : rng(seed) {}
  double step() {  // up to what the loop itself foresees, now and then all of it
    const double most = foreseen.next_step > 0 ? foreseen.next_step : 1.0;
    const double took = rng.below(3) == 0 ? most : most * (0.3 + 0.7 * rng.uniform01());
    foreseen.took(std::min(took, 2.0));
    return std::min(took, 2.0);
  }
  double checkpoint() {  // the first is measured before the clock begins
    const double took = checkpoints == 0 ? 3.0 : 3.0 * (0.25 + 1.0 * rng.uniform01());
    ++checkpoints;
    return std::min(took, 3.75);
  }
  Rng rng;
  Progress foreseen;
  int64_t checkpoints = 0;
};

class Clock : public testing::TestWithParam<int64_t> {  // how many steps' results may come late
 protected:
  Clock() {
    std::filesystem::create_directories(scratch_ / "data");
    write_numbered_shards(scratch_ / "data", {30000, 30000}, 37);
  }

  struct Ran {
    TrainSummary summary;
    double counted = 0;      // by the made-up clock, from the first step's begin to the last step's or checkpoint's end
    double validations = 0;  // not counted
    int64_t checkpoints = 0;
    std::vector<bool> waits;  // of each validation: whether SIGTERM would wait for its end
  };
  Ran run(const std::string& name, uint64_t seed, const std::vector<std::string>& more, bool resume = false) {
    std::vector<std::string> settings{"model.vocab=1024", "train.seconds=20", "train.steps=0", "train.checkpoint_every=0"};
    settings.insert(settings.end(), more.begin(), more.end());
    const Recipe recipe = load_recipe("smoke", settings);
    Queue queue(2);
    const auto executor = make_executor(Backend::cpu, queue);
    const data::ShardSet shards = data::ShardSet::open_train(scratch_ / "data");
    data::Loader loader(shards, sampler_options(recipe), loader_options(recipe));
    RunFolder folder(scratch_ / name, recipe, resume);
    Trainer trainer(recipe, micro_batch_geometry(recipe), *executor);
    MadeUpTimes times(seed);
    Ran ran;
    double now = 1000, begun = -1, end_of_step = 0;
    TrainOptions options{.resume = resume, .quiet = true, .seed = 1, .behind = GetParam()};
    options.clock = [&] { return now; };
    options.after_step = [&](int64_t, double, ModelStage) {
      if (begun < 0) begun = now;
      now += times.step();
      end_of_step = now - ran.validations;
    };
    options.forecast_bytes = [&](const Tensor&) {
      now += times.checkpoint();
      return 1.0;
    };
    options.validate = [&](const Tensor&, ModelStage) {
      now += 7;
      ran.validations += 7;
      struct sigaction now_done {};
      sigaction(SIGTERM, nullptr, &now_done);
      ran.waits.push_back(now_done.sa_handler != SIG_DFL);
      return Validation{1, 1, 7};
    };
    ran.summary = train(recipe, trainer, loader, folder, queue.pool(), options);
    ran.counted = end_of_step - begun;
    ran.checkpoints = times.checkpoints;
    return ran;
  }

  ScratchFolder scratch_;
};

TEST_P(Clock, NoStepOrCheckpointEndsPastTheBudget) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Ran ran = run("run" + std::to_string(seed), seed,
                        {seed % 2 == 0 ? "train.checkpoint_every=4" : "train.checkpoint_seconds=5", "train.validate_every=5"});
    EXPECT_LE(ran.summary.train_seconds, 20.0) << "seed " << seed;
    EXPECT_LE(ran.counted, 20.0) << "seed " << seed;
    EXPECT_GE(ran.summary.train_seconds, ran.counted - 1e-9) << "seed " << seed << ": all but validation counts";
    EXPECT_GE(ran.summary.train_seconds, 20.0 - 2 * 2.0 - 3.75) << "seed " << seed << ": no more is left than may not fit";
    EXPECT_GT(ran.checkpoints, 2) << "seed " << seed;
    EXPECT_GT(ran.validations, 7) << "seed " << seed;
  }
}

// Also where the last thing inside the budget was a checkpoint, whose own time counts.
TEST_P(Clock, ARunThatHasEndedHasNothingLeftToTrain) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const std::string name = "run" + std::to_string(seed);
    const Ran ran = run(name, seed, {"train.checkpoint_every=1"});
    const Ran again = run(name, seed, {"train.checkpoint_every=1"}, true);
    EXPECT_EQ(again.summary.steps, ran.summary.steps) << "seed " << seed;
  }
}

TEST_P(Clock, CheckpointsAreMeasuredOnlyWhereThereWillBeSome) {
  EXPECT_EQ(run("none", 3, {"train.checkpoint_seconds=60"}).checkpoints, 1) << "the one after the last step";
  EXPECT_EQ(run("never", 3, {"train.checkpoint_seconds=0"}).checkpoints, 1);
}

// The last validation has nothing to save, and may take many times as long as a step.
TEST_P(Clock, SignalsEndTheLastValidationAtOnce) {
  const Ran ran = run("run", 1, {"train.validate_every=5"});
  ASSERT_GT(ran.waits.size(), 1U);
  for (size_t i = 0; i + 1 < ran.waits.size(); ++i) EXPECT_TRUE(ran.waits[i]) << "steps since the checkpoint would be lost";
  EXPECT_FALSE(ran.waits.back());
}

INSTANTIATE_TEST_SUITE_P(Results, Clock, testing::Values(0, 1));

}  // namespace
}  // namespace fairway
