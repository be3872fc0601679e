// What ends a run in the middle, a device that is lost or memory that is not there, leaves its checkpoint, says which, and
// resumes to what an undisturbed run leaves.
#include <gmock/gmock.h>

#include <new>

#include "backends/backends.h"
#include "base/device_error.h"
#include "base/file.h"
#include "data/scratch_folder.h"
#include "train/loader_settings.h"
#include "train/loop.h"

namespace fairway {
namespace {

using testing::AllOf, testing::HasSubstr;

class LostDevice : public testing::Test {
 protected:
  LostDevice() {
    std::filesystem::create_directories(scratch_ / "data");
    write_numbered_shards(scratch_ / "data", {30000, 30000}, 37);
  }

  // What the run says when it fails; empty: it went to its end. `after_step` is where it meets its fault.
  std::string run(const std::string& name, bool resume, const std::function<void(int64_t step)>& after_step = {}) {
    const std::vector<std::string> settings{"model.vocab=1024", "train.steps=10", "train.checkpoint_every=3"};
    const Recipe of = load_recipe("smoke", settings);
    Queue queue(1);
    const auto executor = make_executor(Backend::cpu, queue);
    const data::ShardSet shards = data::ShardSet::open_train(scratch_ / "data");
    data::Loader loader(shards, sampler_options(of), loader_options(of));
    RunFolder folder(scratch_ / name, of, resume);
    Trainer trainer(of, micro_batch_geometry(of), *executor);
    TrainOptions options{.resume = resume, .quiet = true, .seed = 1};
    if (after_step) options.after_step = [&](int64_t step, double, ModelStage) { after_step(step); };
    try {
      train(of, trainer, loader, folder, queue.pool(), options);
    } catch (const WorkError& error) {
      return error.what();
    }
    return "";
  }

  void expect_resumes(const std::string& name) {
    EXPECT_EQ(run("straight", false), "");
    EXPECT_EQ(run(name, true), "");
    for (const char* file : {"metrics.jsonl", "averaged.safetensors", "checkpoint/latest.safetensors"})
      EXPECT_TRUE(read_file(scratch_ / name / file) == read_file(scratch_ / "straight" / file)) << file;
  }

  ScratchFolder scratch_;
};

TEST_F(LostDevice, NamesTheCheckpointAndResumes) {
  const auto lost = [](int64_t step) {
    if (step == 8) throw DeviceError("the device is lost");
  };
  EXPECT_THAT(run("lost", false, lost),
              AllOf(HasSubstr("after step 8: the device is lost; the checkpoint after step 6 is kept"), HasSubstr("--resume")));
  expect_resumes("lost");
}

TEST_F(LostDevice, BeforeTheFirstCheckpointSaysSo) {
  const auto lost = [](int64_t) { throw DeviceError("the device is lost"); };
  EXPECT_THAT(run("early", false, lost), HasSubstr("no checkpoint was made yet"));
  expect_resumes("early");
}

TEST_F(LostDevice, MemoryThatIsNotThereToo) {
  const auto full = [](int64_t step) {
    if (step == 5) throw std::bad_alloc();
  };
  EXPECT_THAT(run("full", false, full),
              AllOf(HasSubstr("after step 5: out of memory; the checkpoint after step 3 is kept"), HasSubstr("--resume")));
  expect_resumes("full");
}

}  // namespace
}  // namespace fairway
