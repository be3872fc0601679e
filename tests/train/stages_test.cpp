// Stage switches and resuming, seen by the training loop itself: which stage each step runs in, and that a run which was
// stopped anywhere leaves what an undisturbed one leaves.
#include <gmock/gmock.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

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

  // The losses of three steps on one text, and the weights that they leave.
  static std::pair<std::vector<double>, std::vector<float>> trained(const Recipe& of, const TrainStage& stage,
                                                                    int32_t cut = 0) {
    Queue queue(1);
    const auto executor = make_executor(Backend::cpu, queue);
    Trainer trainer(of, micro_batch_geometry(of), *executor);
    trainer.initialize(3, queue.pool());
    const Spec spec{{of.train.micro_batch_tokens}, DType::i32};
    std::vector<int32_t> tokens(static_cast<size_t>(of.train.micro_batch_tokens + 1)), starts(tokens.size() - 1);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i * 37 % 1000);
    for (int32_t i = 0; i < static_cast<int32_t>(starts.size()); ++i) {
      const int32_t document = i < 50 ? 0 : i < 53 ? 50 : 53;  // three of them
      starts[static_cast<size_t>(i)] = cut == 0 ? document : document + (i - document) / cut * cut;
    }
    std::pair<std::vector<double>, std::vector<float>> out;
    for (int64_t step = 1; step <= 3; ++step) {
      const auto next = [&] {
        return MicroBatch{make_view(tokens.data(), spec), make_view(tokens.data() + 1, spec), make_view(starts.data(), spec)};
      };
      out.first.push_back(trainer.step(next, {.learning_rate_scale = 1, .momentum = 0.9, .step = step}, stage).loss);
    }
    const Tensor weights = trainer.params().flat_values();
    out.second.assign(weights.as<float>(), weights.as<float>() + weights.numel());
    return out;
  }

  // The rows that metrics.jsonl tells of each step.
  std::vector<int64_t> rows_told(const std::string& name) {
    std::vector<int64_t> out;
    std::istringstream lines(read_file(scratch_ / name / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto told = nlohmann::json::parse(line);
      if (told.contains("loss")) out.push_back(told.value("rows", int64_t{0}));
    }
    return out;
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
  EXPECT_GT(trainer.session({.model = {.looped = true}}).program().calls.size(), plain) << "a looped layer runs twice";
  EXPECT_GT(trainer.session({.model = {.fake_quant = true}}).program().calls.size(), plain) << "every matrix is rounded";
  const Recipe without = recipe({"train.qat.enabled=false"});
  const Trainer never(without, micro_batch_geometry(without), *executor);
  EXPECT_THROW((void)never.session({.model = {.fake_quant = true}}), std::logic_error);
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

TEST_F(Stages, RowsAreShortUntilTheirPartOfTheRun) {
  const Recipe of = recipe({"data.short_rows.lengths=[16,32]", "data.short_rows.until_percent=[25,60]"});
  run("growing", of);
  std::vector<int64_t> expected(20, 0);
  std::fill_n(expected.begin(), 5, 16);
  std::fill_n(expected.begin() + 5, 7, 32);
  EXPECT_EQ(rows_told("growing"), expected);
  const std::string log = read_file(scratch_ / "growing" / "train.log");
  for (const char* line : {"rows:16 step:0 ", "rows:32 step:5 ", "rows:64 step:12 "})
    EXPECT_THAT(log, testing::HasSubstr(line));
  for (const int64_t until : {3, 5, 6, 12, 15}) {
    const std::string name = "growing" + std::to_string(until);
    EXPECT_TRUE(run(name, of, false, until).summary.interrupted);
    run(name, of, true);
    expect_same_end(name, "growing");
  }
  run("whole", recipe());
  EXPECT_THAT(rows_told("whole"), testing::Each(0));
}

TEST_F(Stages, ShortRowsAreRowsOfThatLength) {
  const std::vector<std::string> both{"model.rope.reference_length=64"};
  auto longer = both, shorter = both;
  longer.insert(longer.end(), {"data.short_rows.lengths=[16]", "data.short_rows.until_percent=[50]"});
  shorter.insert(shorter.end(), {"data.seq_len=16"});
  for (const ModelStage model : {ModelStage{}, ModelStage{true, true}}) {
    const auto expected = trained(recipe(shorter), {.model = model});
    EXPECT_EQ(trained(recipe(longer), {.model = model, .short_rows = 16}), expected);
    EXPECT_NE(trained(recipe(longer), {.model = model}).first, expected.first) << "long rows see further back";
  }
}

TEST_F(Stages, PackedDocumentsAreCutIntoPieces) {
  const Recipe of = recipe({"data.sampler=docpack", "data.short_rows.lengths=[16]", "data.short_rows.until_percent=[50]"});
  const auto expected = trained(of, {}, 16);
  EXPECT_EQ(trained(of, {.short_rows = 16}), expected);
  EXPECT_NE(trained(of, {}).first, expected.first);
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
