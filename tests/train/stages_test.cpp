// Stage switches and resuming, seen by the training loop itself: which stage each step runs in, and that a run which was
// stopped anywhere leaves what an undisturbed one leaves.
#include <gmock/gmock.h>

#include <csignal>

#include "backends/backends.h"
#include "base/file.h"
#include "data/scratch_folder.h"
#include "train/loader_settings.h"
#include "train/loop.h"

namespace fairway {
namespace {

class Stages : public testing::Test {
 protected:
  Stages() {
    std::filesystem::create_directories(scratch_ / "data");
    write_numbered_shards(scratch_ / "data", {30000, 30000}, 37);
  }

  // Switches at steps of their own: 20 steps loop after half of them, and the multiplier is 0.4, 0.3, 0.2, … from the 17th on.
  static Recipe recipe(std::vector<std::string> settings = {}) {
    settings.insert(settings.begin(),
                    {"model.vocab=1024", "train.steps=20", "train.checkpoint_every=0", "train.qat.lr_mul_below=0.35"});
    return load_recipe("smoke", settings);
  }

  struct Ran {
    std::vector<ModelStage> stages;  // of each step of this process
    TrainSummary summary;
  };
  // Stops as a signal would stop it after step `until`; 0: goes to its end.
  Ran run(const std::string& name, const Recipe& of, bool resume = false, int64_t until = 0) {
    Ran ran;
    Queue queue(1);
    const auto executor = make_executor(Backend::cpu, queue);
    const data::ShardSet shards = data::ShardSet::open_train(scratch_ / "data");
    data::Loader loader(shards, sampler_options(of), loader_options(of));
    RunFolder folder(scratch_ / name, of, resume);
    Trainer trainer(of, micro_batch_geometry(of), *executor);
    TrainOptions options{.resume = resume, .quiet = true, .seed = 1};
    options.after_step = [&](int64_t step, double, ModelStage stage) {
      ran.stages.push_back(stage);
      if (step == until) std::raise(SIGUSR1);
    };
    ran.summary = train(of, trainer, loader, folder, queue.pool(), options);
    return ran;
  }

  void expect_same_end(const std::string& name, const std::string& straight) {
    for (const char* file : {"metrics.jsonl", "averaged.safetensors", "checkpoint/latest.safetensors"})
      EXPECT_TRUE(read_file(scratch_ / name / file) == read_file(scratch_ / straight / file)) << name << ": " << file;
  }

  ScratchFolder scratch_;
};

std::string marks(const std::vector<ModelStage>& stages) {
  std::string out;
  for (const ModelStage stage : stages) out += stage.fake_quant ? (stage.looped ? 'b' : 'q') : stage.looped ? 'l' : '.';
  return out;
}

TEST_F(Stages, LoopAndFakeQuantizationBeginAtTheirStepsAndStay) {
  EXPECT_EQ(marks(run("both", recipe()).stages), "..........lllllllbbb");
  EXPECT_EQ(marks(run("loop", recipe({"train.qat.enabled=false"})).stages), "..........llllllllll");
  EXPECT_EQ(marks(run("quantized", recipe({"model.loop.count=0", "model.loop.start=0", "model.loop.end=0"})).stages),
            ".................qqq");
  EXPECT_EQ(marks(run("early", recipe({"model.loop.at_fraction=0"})).stages), "lllllllllllllllllbbb");
}

TEST_F(Stages, AStageIsAnotherProgramOverTheSameWeights) {
  const Recipe of = recipe();
  Queue queue(1);
  const auto executor = make_executor(Backend::cpu, queue);
  const Trainer trainer(of, micro_batch_geometry(of), *executor);
  const size_t plain = trainer.session({}).program().calls.size();
  EXPECT_GT(trainer.session({.looped = true}).program().calls.size(), plain) << "a looped layer runs twice";
  EXPECT_GT(trainer.session({.fake_quant = true}).program().calls.size(), plain) << "every matrix is rounded";
  const Recipe without = recipe({"train.qat.enabled=false"});
  const Trainer never(without, micro_batch_geometry(without), *executor);
  EXPECT_THROW((void)never.session({.fake_quant = true}), std::logic_error);
}

TEST_F(Stages, ResumingGoesOnInTheStageThatWasLeft) {
  const std::string all = marks(run("straight", recipe()).stages);
  for (const int64_t until : {4, 10, 11, 18}) {  // before, at and after the switches
    const std::string name = "stopped" + std::to_string(until);
    const Ran first = run(name, recipe(), false, until), second = run(name, recipe(), true);
    EXPECT_TRUE(first.summary.interrupted);
    EXPECT_FALSE(second.summary.interrupted);
    EXPECT_EQ(marks(first.stages), all.substr(0, static_cast<size_t>(until)));
    EXPECT_EQ(marks(second.stages), all.substr(static_cast<size_t>(until)));
    expect_same_end(name, "straight");
  }
}

TEST_F(Stages, EverySamplerResumesWhereItWas) {
  for (const char* sampler : {"sequential", "coprime", "shuffled", "docpack"}) {
    const Recipe of = recipe({std::string("data.sampler=") + sampler, "train.steps=6"});
    const std::string straight = std::string(sampler) + " straight", stopped = std::string(sampler) + " stopped";
    run(straight, of);
    EXPECT_TRUE(run(stopped, of, false, 3).summary.interrupted);
    EXPECT_EQ(run(stopped, of, true).stages.size(), 3U);
    expect_same_end(stopped, straight);
  }
}

}  // namespace
}  // namespace fairway
