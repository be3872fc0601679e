// The sbatch files of scripts/cluster on a real Slurm of one node (scripts/one-node-slurm): the same bytes as one process, also
// when Slurm asks a job to stop and it goes back into the queue. Skipped, saying so, where Slurm is not installed.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "app/ranks_world.h"

namespace {

namespace fs = std::filesystem;
const std::string kScripts = FAIRWAY_SOURCE_DIR "/scripts/";

// Processes that were started with these bytes in their environment.
std::vector<std::string> started_with(const std::string& variable) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (contents(entry.path() / "environ").find(variable) != std::string::npos) out.push_back(contents(entry.path() / "comm"));
  return out;
}

class Slurm : public RanksWorld {
 protected:
  void SetUp() override {
    const Outcome tried = with_slurm("true", {});
    if (tried.status == 3) GTEST_SKIP() << tried.err;
    ASSERT_EQ(tried.status, 0) << tried.text();
    RanksWorld::SetUp();
  }
  void TearDown() override {
    RanksWorld::TearDown();
    EXPECT_THAT(started_with("SLURM_CONF=" + (scratch_ / "slurm").string()), testing::IsEmpty()) << "outlive the test";
  }

  // In `commands` $0 is the program and $@ are the words.
  Outcome with_slurm(const std::string& commands, const Args& words) {
    fs::remove_all(scratch_ / "slurm");
    return Child(words, {kScripts + "one-node-slurm", scratch_ / "slurm", "bash", "-euo", "pipefail", "-c", commands}).wait();
  }
  // Submits a file of scripts/cluster with `options`, and `wait` or what is to happen to the job $job.
  std::string submit(const std::string& file, const std::string& options, const std::string& then) const {
    return "cd '" + scratch_.path().string() + "' && export FAIRWAY=$0 && job=$(sbatch --parsable --output=job.log " + options +
           " '" + kScripts + "cluster/" + file + "' \"$@\")\n" + then +
           "\nuntil state=$(squeue -h -o %T -j $job 2>/dev/null) && [ -z \"$state\" ] || [ \"$state\" = COMPLETED ]; do sleep "
           "0.1; done\n"
           "scontrol show job $job | grep -o 'ExitCode=[0-9:]*' || true\n";
  }
  std::string log() const { return contents(scratch_ / "job.log"); }
};

TEST_F(Slurm, OneNodeNeedsNoMpi) {
  const RunBytes want = straight(12);
  const Outcome done = with_slurm(submit("one-node.sbatch", "", ""), train("one", 12, {"--ranks", "2", "--backend", "cpu"}));
  ASSERT_EQ(done.status, 0) << done.text() << log();
  expect_same(bytes_of_run(scratch_ / "one"), want, "two ranks of one task: " + log());
  EXPECT_EQ(nlohmann::json::parse(contents(scratch_ / "one/machine.json"))["launch"]["ranks"], 2) << log();
}

TEST_F(Slurm, TasksOfSeveralNodesMeetOverMpi) {
  const Outcome offered = with_slurm("srun --mpi=list", {});
  if (offered.text().find("pmix") == std::string::npos) GTEST_SKIP() << "this Slurm has no PMIx: " << offered.text();
  if (!run_json({"doctor"})["mpi"].get<bool>()) GTEST_SKIP() << "this program was built without MPI (libopenmpi-dev)";
  const RunBytes want = straight(12);
  const Outcome done =
      with_slurm(submit("several-nodes.sbatch", "--nodes=1 --ntasks-per-node=2", ""), train("tasks", 12, {"--backend", "cpu"}));
  ASSERT_EQ(done.status, 0) << done.text() << log();
  expect_same(bytes_of_run(scratch_ / "tasks"), want, "two tasks: " + log());
  EXPECT_EQ(nlohmann::json::parse(contents(scratch_ / "tasks/machine.json"))["launch"]["ranks"], 2) << log();
}

TEST_F(Slurm, AJobThatIsStoppedInTimeGoesBackAndGoesOn) {
  constexpr int kSteps = 150;
  const RunBytes want = straight(kSteps);
  const std::string records = "$(wc -l <requeued/metrics.jsonl 2>/dev/null || echo 0)";
  const Outcome done = with_slurm(submit("one-node.sbatch", "",
                                         "until [ " + records +
                                             " -ge 5 ]; do sleep 0.05; done\n"
                                             "scancel --signal=TERM $job\n"  // as --signal=TERM@120 does
                                             "until grep -q 'saved after step' job.log; do sleep 0.1; done\n"),
                                  train("requeued", kSteps, {"--ranks", "2", "--backend", "cpu"}));
  ASSERT_EQ(done.status, 0) << done.text() << log();
  EXPECT_EQ(occurrences(log(), "saved after step"), 1U) << log();
  expect_same(bytes_of_run(scratch_ / "requeued"), want, "after the queue: " + log());
}

}  // namespace
