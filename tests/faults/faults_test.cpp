// File operations and allocations that go wrong one by one, in every command that leaves something, and gradients in those that
// train.
#include <cstdlib>

#include "data/shard.h"
#include "faults/trial.h"

namespace {

// A model so small that a trial is mostly file operations: nearly as many of them as with the recipe's own sizes, in a tenth of
// the time.
Args small(Args args) {
  for (const char* setting :
       {"model.dim=16", "model.heads=2", "model.kv_heads=1", "model.mlp_hidden=16", "model.rope.dims=4",
        "model.bigram={rows=4, dim=4}", "model.value_embed.dim=4", "data.seq_len=32", "score={context=32, stride=32}",
        "train.batch_tokens=128", "train.micro_batch_tokens=32", "train.checkpoint_every=2"})
    args.insert(args.end(), {"--set", setting});
  args.emplace_back("--quiet");
  return args;
}

// Where every operation is tried, threads that wait for each other cost more than they do; `make test` has all of them.
Args on_few_threads(Args args) {
  if (std::getenv("FAIRWAY_TORTURE") != nullptr) args.insert(args.end(), {"--threads", "1"});
  return args;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    fairway::data::write_shard(data_ + "/fineweb_val_000000.bin", random_tokens(300, kSmokeVocab, 3));
  }
  std::string at(const std::string& name) const { return scratch_ / name; }
  Args train(const std::string& out, const Args& more = {}) const {
    Args all = on_few_threads(small({"--steps", "6"}));
    all.insert(all.end(), more.begin(), more.end());
    return train_smoke(data_, out, all);
  }
  void make_run() const { ASSERT_EQ(run_program(train(at("run"))).status, 0); }
  void make_artifact() const {
    make_run();
    ASSERT_EQ(run_program({"pack", at("run"), "--data", data_, "--as-published", "--quiet"}).status, 0);
  }

  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", out_ = scratch_ / "out";
};

TEST_F(Faults, OfTokenize) {
  const std::string words = data_ + "/words.txt";
  expect_faults_survived({.args = {"data", "tokenize", words, "--val", held_out_of(words), "--tokenizer",
                                   data_ + "/tokenizer.model", "--shuffle", "1", "--shards", "3", "--out", out_},
                          .place = out_,
                          .ci = 5});
}

TEST_F(Faults, OfTrain) {
  expect_faults_survived({.args = train(out_), .again = train(out_, {"--resume"}), .place = out_, .ci = 5});
}

TEST_F(Faults, OfPack) {
  make_run();
  expect_faults_survived(
      {.args = on_few_threads({"pack", at("run"), "--data", data_, "--as-published", "--quiet", "--out", out_ + "/model.fwy"}),
       .place = out_,
       .makes_folder = true,
       .ci = 3});
}

TEST_F(Faults, OfScore) {
  make_artifact();
  expect_faults_survived(
      {.args = on_few_threads({"score", at("run") + "/model.fwy", "--data", data_, "--quiet", "--out", out_}),
       .place = out_,
       .ci = 4});
}

TEST_F(Faults, OfRun) {
  const Args args = on_few_threads(
      small({"run", "smoke", "--data", data_, "--out", out_, "--steps", "4", "--as-published", "--score-seconds", "0"}));
  Args again = args;
  again.emplace_back("--resume");
  expect_faults_survived({.args = args, .again = again, .place = out_, .ci = 2});
}

TEST_F(Faults, OfSubmission) {
  const Outcome made = run_program(
      small({"run", "smoke", "--data", data_, "--out", at("seeds"), "--steps", "4", "--seeds", "1,2,3", "--as-published"}));
  ASSERT_EQ(made.status, 0) << made.text();
  expect_faults_survived(
      {.args = {"submission", at("seeds"), "--name", "Tiny", "--author", "A", "--github-id", "a", "--artifacts", "--out", out_},
       .place = out_,
       .done = "already exists",
       .ci = 4});
}

}  // namespace
