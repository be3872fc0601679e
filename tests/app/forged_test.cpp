// Forged and swapped receipts, artifacts, tokenizers and texts: each is refused with a sentence of its own.
#include <gmock/gmock.h>

#include <cstring>
#include <set>

#include "app/forge.h"
#include "data/shard.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using testing::HasSubstr;

// A copy of the scored run and its data, to be spoilt.
struct Scene {
  Path folder;
  Path receipt() const { return folder / "run" / "receipt.json"; }
  Path run(const std::string& name) const { return folder / "run" / name; }
  Path data(const std::string& name) const { return folder / "data" / name; }
};

struct Forgery {
  std::string name, sentence;
  std::function<void(const Scene&)> change;
  Args more = {};
};

std::function<void(const Scene&)> receipt_with(const std::function<void(ordered_json&)>& change) {
  return [change](const Scene& scene) { forge(scene.receipt(), change); };
}

void halve(ordered_json& number) { number = number.get<double>() / 2; }

// Loss, bits per byte and sums of half the nats: what a better model would have.
void better(ordered_json& r) {
  for (const char* key : {"val_loss", "val_bpb"}) halve(r["score"][key]);
  halve(r["records"]["nats"][0]);
}

// All that a receipt can be held against without a model.
void better_everywhere(const Scene& scene) {
  halve_records(scene.run("score.records"));
  forge(scene.receipt(), [&](ordered_json& r) {
    better(r);
    r["records"]["file"]["sha256"] = fairway::sha256_of_file(scene.run("score.records"));
    put_file(scene.run("score.json"), r["score"].dump(2));
  });
}

void flip_byte(const Path& path, size_t at) {
  std::string bytes = contents(path);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  put_file(path, bytes);
}

std::vector<Forgery> forgeries_of_numbers() {
  return {
      {"bits per byte", "its val_bpb is", receipt_with([](ordered_json& r) { halve(r["score"]["val_bpb"]); })},
      {"loss", "its val_loss is", receipt_with([](ordered_json& r) { halve(r["score"]["val_loss"]); })},
      {"tokens", "its tokens is", receipt_with([](ordered_json& r) { r["score"]["tokens"] = 7; })},
      {"bytes", "its bytes is", receipt_with([](ordered_json& r) { r["score"]["bytes"] = 7; })},
      {"bytes everywhere", "its byte count does not match the data", receipt_with([](ordered_json& r) {
         r["score"]["bytes"] = 2 * r["score"]["bytes"].get<int64_t>();
         r["records"]["bytes"][0] = 2 * r["records"]["bytes"][0].get<int64_t>();
         halve(r["score"]["val_bpb"]);
       })},
      {"sums", "its sums are not those of", receipt_with(better)},
      {"a block too many", "its records are not the sums of",
       receipt_with([](ordered_json& r) { r["records"]["nats"].push_back(0); })},
      {"records alone", "the records have been changed", [](const Scene& scene) { halve_records(scene.run("score.records")); }},
      {"records, sums and scores", "scored again: its val_bpb is", better_everywhere, {"--again"}},
      {"the hash of all records too",
       "scored again, the records differ",
       [](const Scene& scene) {
         better_everywhere(scene);
         forge(scene.receipt(), [](ordered_json& r) { r["records"]["sha256"] = std::string(64, '0'); });
       },
       {"--again"}},
      {"score.json beside it", "score.json has a different score",
       [](const Scene& scene) { put_file(scene.run("score.json"), R"({"val_bpb": 0.9})"); }},
      {"mode", "its mode is", receipt_with([](ordered_json& r) { r["score"]["mode"] = "sliding"; })},
      {"legality", "it contradicts itself on whether it is legal",
       receipt_with([](ordered_json& r) { r["score"]["legal"] = false; })},
      {"an unpacked model", "form of the weights: weights as trained in the receipt, an artifact here",
       receipt_with([](ordered_json& r) { r["score"]["packed"] = false; })},
  };
}

std::vector<Forgery> forgeries_of_files() {
  return {
      {"text without a new checksum", "was changed after it was written",
       [](const Scene& scene) {
         std::string text = contents(scene.receipt());
         put_file(scene.receipt(), text.replace(text.find("\"val_bpb\": ") + 11, 1, "0"));
       }},
      {"version", "a receipt of version 2", receipt_with([](ordered_json& r) { r["receipt"] = 2; })},
      {"a test left out", "T7 of the audit was left out", receipt_with([](ordered_json& r) { r["audit"]["tests"].erase(6); })},
      {"a test that failed", "T3 of the audit did not hold",
       receipt_with([](ordered_json& r) { r["audit"]["tests"][2]["held"] = false; })},
      {"no audit", "has no audit yet", receipt_with([](ordered_json& r) { r.erase("audit"); })},
      {"program", "this is not the program that scored",
       receipt_with([](ordered_json& r) { r["program"]["sha256"] = std::string(64, '0'); })},
      {"recipe", "recipe: SHA-256 000000000000… in the receipt",
       receipt_with([](ordered_json& r) { r["recipe"] = std::string(64, '0'); })},
      {"another artifact", "artifact: SHA-256",
       [](const Scene& scene) { fs::rename(scene.folder / "other.fwy", scene.run("model.fwy")); }},
      {"a damaged artifact", "model.fwy",
       [](const Scene& scene) { flip_byte(scene.run("model.fwy"), fs::file_size(scene.run("model.fwy")) / 2); }},
      {"another text", "validation shards: SHA-256",
       [](const Scene& scene) {
         fairway::data::write_shard(scene.data("fineweb_val_000000.bin"), random_tokens(1500, kSmokeVocab, 9));
       }},
      {"no text", "no validation shards", [](const Scene& scene) { fs::remove(scene.data("fineweb_val_000000.bin")); }},
      {"another tokenizer", "tokenizer",
       [](const Scene& scene) { fs::rename(scene.folder / "other.model", scene.data("tokenizer.model")); }},
      {"byte counts", "byte counts (fineweb_val_bytes_*.bin): none in the receipt",
       [](const Scene& scene) {
         fairway::data::write_shard(scene.data("fineweb_val_bytes_000000.bin"), std::vector<uint16_t>(1500, 9));
       }},
  };
}

class Forged : public testing::Test {
 protected:
  void SetUp() override {
    const std::string data = good_.data(""), run = good_.run("");
    make_data(data);
    ASSERT_EQ(run_program(train_smoke(data, run, {"--steps", "3", "--quiet"})).status, 0);
    ASSERT_EQ(run_program({"pack", run, "--data", data, "--as-published", "--quiet"}).status, 0);
    ASSERT_EQ(run_program({"score", good_.run("model.fwy"), "--data", data, "--mode", "plain", "--out", run}).status, 0);
    forge(good_.receipt(), seem_audited);
    const std::string other = scratch_ / "other";
    ASSERT_EQ(run_program(train_smoke(data, other, {"--steps", "3", "--seed", "9", "--quiet"})).status, 0);
    ASSERT_EQ(
        run_program({"pack", other, "--data", data, "--as-published", "--quiet", "--out", good_.folder / "other.fwy"}).status,
        0);
    put_file(scratch_ / "words.txt", "other words " + english_like(40000));
    ASSERT_EQ(run_program({"data", "train-tokenizer", scratch_ / "words.txt", "--vocab", std::to_string(kSmokeVocab), "--out",
                           good_.folder / "other.model"})
                  .status,
              0);
  }
  Outcome verify(const Scene& scene, const Args& more) const {
    Args args{"audit", "--verify", scene.receipt()};
    args.insert(args.end(), more.begin(), more.end());
    return run_program(args);
  }
  Scene copy(const std::string& name) const {
    Scene scene{scratch_ / name};
    fs::remove_all(scene.folder);
    fs::copy(good_.folder, scene.folder, fs::copy_options::recursive);
    return scene;
  }

  ScratchFolder scratch_;
  const Scene good_{scratch_ / "good"};
};

TEST_F(Forged, EachIsRefusedWithItsOwnSentence) {
  ASSERT_EQ(verify(good_, {"--again"}).status, 0) << verify(good_, {"--again"}).text();
  std::set<std::string> sentences;
  size_t tried = 0;
  for (const auto& list : {forgeries_of_numbers(), forgeries_of_files()}) {
    for (const Forgery& forgery : list) {
      SCOPED_TRACE(forgery.name);
      const Scene scene = copy("forged");
      forgery.change(scene);
      const Outcome outcome = verify(scene, forgery.more);
      EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << outcome.text();
      EXPECT_THAT(outcome.out + outcome.err, HasSubstr(forgery.sentence));
      EXPECT_TRUE(sentences.insert(forgery.sentence).second) << "another forgery has this sentence";
      ++tried;
    }
  }
  EXPECT_GE(tried, 20u);
}

// Sums of products go in another order with other instructions: the last bits differ, the score does not.
TEST_F(Forged, AnotherCpuIsNoForgery) {
  const auto again_on = [&](const std::string& isa) {
    return Child({"audit", "--verify", good_.receipt(), "--again"}, {"env", "FAIRWAY_ISA=" + isa}).wait();
  };
  const Outcome outcome = again_on("generic");
  EXPECT_EQ(outcome.status, 0) << outcome.text();
  const auto scored_with = ordered_json::parse(contents(good_.receipt()))["machine"]["isa"].get<std::string>();
  if (scored_with == "generic") GTEST_SKIP() << "this machine has no other instructions";
  EXPECT_THAT(outcome.out, HasSubstr("equal to 6 digits on another CPU (generic here, " + scored_with + " there)"));
  // The same on the machine that scored: there the bits must be the same.
  forge(good_.receipt(), [](ordered_json& r) { r["machine"]["isa"] = "generic"; });
  const Outcome differs = again_on("generic");
  EXPECT_EQ(differs.status, 1) << differs.text();
  EXPECT_THAT(differs.out, HasSubstr("scored again, the records differ"));
}

TEST_F(Forged, SignaturesAreThoseOfSshKeygen) {
  const std::string key = scratch_ / "key", other = scratch_ / "other_key", signers = scratch_ / "signers";
  const auto shell = [](const std::string& line) { return std::system((line + " >/dev/null 2>&1").c_str()); };
  if (shell("command -v ssh-keygen") != 0) GTEST_SKIP() << "ssh-keygen is not installed";
  for (const std::string& name : {key, other}) ASSERT_EQ(shell("ssh-keygen -q -t ed25519 -N '' -C '' -f '" + name + "'"), 0);
  put_file(signers, "me@example.org " + contents(key + ".pub"));
  const auto sign_with = [&](const std::string& with) {
    return run_program({"audit", "--receipt", good_.receipt(), "--sign", with});
  };
  const Args asked{"--signers", signers};
  EXPECT_THAT(verify(good_, asked).err, HasSubstr("receipt.json.sig: is missing"));
  ASSERT_EQ(sign_with(key).status, 0) << sign_with(key).text();
  const Outcome held = verify(good_, asked);
  EXPECT_EQ(held.status, 0) << held.text();
  EXPECT_THAT(held.out, HasSubstr("holds (signed by me@example.org)"));
  EXPECT_EQ(shell("ssh-keygen -Y verify -f '" + signers + "' -I me@example.org -n fairway-receipt -s '" +
                  good_.receipt().string() + ".sig' < '" + good_.receipt().string() + "'"),
            0);
  // Another receipt under the same signature, as anybody can make one whose checksum is right.
  const std::string signed_text = contents(good_.receipt());
  forge(good_.receipt(), [](ordered_json& r) { r["remark"] = "mine"; });
  EXPECT_EQ(verify(good_, {}).status, 0);
  const Outcome forged = verify(good_, asked);
  EXPECT_EQ(forged.status, 1) << forged.text();
  EXPECT_THAT(forged.out, HasSubstr("is not me@example.org's signature of this receipt"));
  put_file(good_.receipt(), signed_text);
  ASSERT_EQ(sign_with(other).status, 0);
  EXPECT_THAT(verify(good_, asked).out, HasSubstr("signed by nobody in"));
  EXPECT_EQ(sign_with(scratch_ / "absent").status, 2);
  EXPECT_EQ(sign_with(signers).status, 2) << "not a key";
  const Outcome bare = Child({"audit", "--receipt", good_.receipt(), "--sign", key}, {"env", "PATH=/nowhere"}).wait();
  EXPECT_EQ(bare.status, 2) << bare.text();
  EXPECT_THAT(bare.err, HasSubstr("ssh-keygen is not installed"));
}

}  // namespace
