// A model of packed documents is validated, scored and audited inside documents, from run folder and artifact alike.
#include <gtest/gtest.h>

#include "app/world.h"

namespace {

using nlohmann::json;

TEST(Documents, AreKeptApartByTrainingAndEveryScoreAfterIt) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", run = scratch / "run", artifact = scratch / "model.fwy", out = scratch / "scored";
  make_data(data);
  const Args packed{"--set", "data.sampler=docpack", "--set", "data.max_segment=32"};
  Args train = train_smoke(data, run, {"--steps", "6", "--quiet"});
  train.insert(train.end(), packed.begin(), packed.end());
  const json trained = run_json(train);
  const json plain = run_json({"score", run, "--data", data, "--mode", "plain"});
  EXPECT_EQ(plain["documents"], true);
  EXPECT_EQ(plain["val_loss"], trained["val_loss"]);  // training validates as `score` scores
  const json across = run_json({"score", run, "--data", data, "--mode", "plain", "--set", "score.documents=false"});
  EXPECT_EQ(across["documents"], false);
  EXPECT_NE(across["val_loss"], plain["val_loss"]);
  Args scored_across = train_smoke(data, scratch / "across", {"--steps", "6", "--quiet", "--set", "score.documents=false"});
  scored_across.insert(scored_across.end(), packed.begin(), packed.end());
  EXPECT_EQ(run_json(scored_across)["val_loss"], trained["val_loss"]);  // as it trains, whatever the score will be

  run_json({"pack", run, "--set", "quant.rule=rtn", "--out", artifact});
  const json of_artifact = run_json({"score", artifact, "--data", data, "--mode", "sliding", "--stride", "16", "--out", out});
  EXPECT_EQ(of_artifact["documents"], true);
  const json receipt = json::parse(contents(out + "/receipt.json"));
  EXPECT_EQ(receipt["settings"]["documents"], true);
  EXPECT_EQ(receipt["score"]["documents"], true);
  const json audit = run_json({"audit", artifact, "--data", data, "--mode", "sliding", "--stride", "16", "--tokens", "320",
                               "--probes", "2", "--receipt", out + "/receipt.json"});
  EXPECT_EQ(audit["legal"], true) << audit.dump(1);
  EXPECT_EQ(run_json({"audit", "--verify", out + "/receipt.json", "--again"})["held"], true);
  EXPECT_EQ(run_program({"audit", artifact, "--data", data, "--mode", "sliding", "--stride", "16", "--set",
                         "score.documents=false", "--receipt", out + "/receipt.json"})
                .status,
            2);  // the receipt of another score
}

TEST(Documents, AreShuffledWhereASeedIsGiven) {
  const ScratchFolder scratch;
  const std::string data = scratch / "data", model = data + "/tokenizer.model", text = scratch / "text.txt";
  make_data(data);
  put_file(text, "one walks\n\n\n\nthe other sits\n\n\n\nnobody sleeps\n\n\n\nall of them eat\n");
  const auto tokenize = [&](const std::string& out, const Args& more) {
    Args args{"data", "tokenize", text, "--tokenizer", model, "--out", scratch / out, "--shards", "1"};
    args.insert(args.end(), more.begin(), more.end());
    return run_json(args);
  };
  EXPECT_EQ(tokenize("plain", {})["shuffle"], nullptr);
  const json shuffled = tokenize("shuffled", {"--shuffle", "3", "--threads", "1"});
  EXPECT_EQ(shuffled["shuffle"], 3);
  EXPECT_EQ(shuffled["documents"], 4);
  EXPECT_EQ(tokenize("again", {"--shuffle", "3", "--threads", "4"})["tokens"], shuffled["tokens"]);
  const auto shard = [&](const std::string& out) { return contents(scratch / out / "fineweb_train_000000.bin"); };
  EXPECT_EQ(shard("shuffled"), shard("again"));
  EXPECT_NE(shard("shuffled"), shard("plain"));
  EXPECT_EQ(shard("shuffled").size(), shard("plain").size());
  EXPECT_EQ(run_json({"data", "inspect", scratch / "plain"})["shuffle"], nullptr);
  EXPECT_EQ(run_json({"data", "inspect", scratch / "shuffled"})["shuffle"], 3);
}

}  // namespace
