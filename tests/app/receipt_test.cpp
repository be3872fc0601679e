// A receipt is believed for nothing that can be computed again: numbers, bytes and files are looked at themselves.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "app/forge.h"
#include "data/shard.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using testing::HasSubstr;

class Receipt : public testing::Test {
 protected:
  void SetUp() override {
    make_data(data_);
    ASSERT_EQ(run_program(train_smoke(data_, run_, {"--steps", "3", "--quiet"})).status, 0);
    ASSERT_EQ(run_program({"pack", run_, "--data", data_, "--quiet"}).status, 0);
    ASSERT_EQ(run_program({"score", artifact_, "--data", data_, "--mode", "plain", "--out", run_}).status, 0);
    forge(receipt_, seem_audited);
  }
  static void holds(const Path& receipt, const Args& more = {}) { EXPECT_EQ(verified(receipt, more).status, 0); }
  static void fails(const Path& receipt, const std::string& sentence, const Args& more = {}) {
    const Outcome outcome = verified(receipt, more);
    EXPECT_EQ(outcome.status, 1) << outcome.text();
    EXPECT_THAT(outcome.out, HasSubstr(sentence));
  }
  static Outcome verified(const Path& receipt, const Args& more) {
    Args args{"audit", "--verify", receipt.string()};
    args.insert(args.end(), more.begin(), more.end());
    return run_program(args);
  }

  ScratchFolder scratch_;
  std::string data_ = scratch_ / "data", run_ = scratch_ / "run", artifact_ = run_ + "/model.fwy",
              receipt_ = run_ + "/receipt.json";
};

TEST_F(Receipt, NumbersMustComeFromTheRecords) {
  holds(receipt_, {"--again"});
  const std::string good = contents(receipt_);
  for (const char* key : {"val_bpb", "val_loss", "tokens", "bytes"}) {
    forge(receipt_, [&](ordered_json& r) { r["score"][key] = r["score"][key].get<double>() * 0.5; });
    for (const Args& more : {Args{}, Args{"--again"}}) fails(receipt_, std::string("its ") + key + " is", more);
    put_file(receipt_, good);
  }
  forge(receipt_, [&](ordered_json& r) { r["score"]["mode"] = "sliding"; });
  fails(receipt_, "its mode is");
  put_file(receipt_, good);
}

TEST_F(Receipt, ItsSumsMustComeFromTheRecordsToo) {
  const std::string good = contents(receipt_), score = contents(run_ + "/score.json");
  const auto halve = [](ordered_json& r) {
    for (const char* key : {"val_loss", "val_bpb"}) r["score"][key] = r["score"][key].get<double>() / 2;
    r["records"]["nats"][0] = r["records"]["nats"][0].get<double>() / 2;
  };
  forge(receipt_, halve);
  put_file(run_ + "/score.json", ordered_json::parse(contents(receipt_))["score"].dump());
  fails(receipt_, "its sums are not those of");
  // The records forged as well: only scoring again can tell.
  std::string records = halve_records(run_ + "/score.records");
  forge(receipt_, [&](ordered_json& r) { r["records"]["file"]["sha256"] = fairway::sha256_hex(records); });
  holds(receipt_);
  fails(receipt_, "scored again", {"--again"});
  // Bytes moved from one document to the next: every sum stays.
  uint64_t targets = 0;
  std::memcpy(&targets, records.data() + 8, 8);
  const size_t table = 16 + 4 * targets + 8;
  records[table + 8] = static_cast<char>(records[table + 8] + 1);
  records[table + 24] = static_cast<char>(records[table + 24] - 1);
  put_file(run_ + "/score.records", records);
  forge(receipt_, [&](ordered_json& r) { r["records"]["file"]["sha256"] = fairway::sha256_hex(records); });
  fails(receipt_, "the documents of its records are not those of the data");
}

TEST_F(Receipt, BytesMustComeFromTheData) {
  forge(receipt_, [](ordered_json& r) {
    r["score"]["bytes"] = 2 * r["score"]["bytes"].get<int64_t>();
    r["score"]["val_bpb"] = r["score"]["val_bpb"].get<double>() / 2;
    r["records"]["bytes"][0] = 2 * r["records"]["bytes"][0].get<int64_t>();
  });
  fails(receipt_, "its byte count does not match the data");
}

// Whatever a receipt says that it is the receipt of is compared with what lies here.
TEST_F(Receipt, EveryIdentityMustBeThatOfWhatLiesHere) {
  const std::string good = contents(receipt_), other(64, 'e');
  const auto told = [&](const std::function<void(ordered_json&)>& change, const std::string& sentence) {
    forge(receipt_, change);
    fails(receipt_, sentence);
    put_file(receipt_, good);
  };
  told([&](ordered_json& r) { r["artifact"]["sha256"] = other; }, "artifact: SHA-256 eeeeeeeeeeee… in the receipt, SHA-256 ");
  told([&](ordered_json& r) { r["data"]["text"] = other; }, ": text: SHA-256 eeeeeeeeeeee… in the receipt");
  told([&](ordered_json& r) { r["data"]["shards"][0]["sha256"] = other; }, "validation shards: SHA-256");
  told([&](ordered_json& r) { r["tokenizer"]["identity"] = r["tokenizer"]["sha256"] = other; }, "tokenizer: SHA-256");
  told([&](ordered_json& r) { r["recipe"] = other; }, "recipe: SHA-256");
  told([&](ordered_json& r) { r["legal"] = false; }, "legal: false in the receipt, true here");
  told([&](ordered_json& r) { r["data"].erase("text"); }, "it does not tell its text");
  told([&](ordered_json& r) { r["artifact"].erase("sha256"); }, "it does not tell its artifact");
  holds(receipt_);
}

// `audit --receipt` adds its tests to a receipt of the same score only.
TEST_F(Receipt, AnAuditBelongsToTheScoreItIsOf) {
  const auto refused = [&](const Args& more, const std::string& sentence) {
    Args args{"audit", artifact_, "--data", data_, "--receipt", receipt_, "--no-controls", "--probes", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = run_program(args);
    EXPECT_EQ(outcome.status, 2) << outcome.text();
    EXPECT_THAT(outcome.err, testing::AllOf(HasSubstr("is not a receipt of this score"), HasSubstr(sentence)));
  };
  refused({"--mode", "sliding"}, "mode: plain in the receipt, sliding here");
  refused({"--mode", "plain", "--context", "32"}, "context: ");
  refused({"--mode", "plain", "--documents"}, "documents: false in the receipt, true here");
  refused({"--mode", "plain", "--set", "score.stride=8"}, "recipe: SHA-256 ");
}

TEST_F(Receipt, ScoresBesideItAreTheSame) {
  std::string score = contents(run_ + "/score.json");
  put_file(run_ + "/score.json", score.replace(score.find("\"val_bpb\": ") + 11, 1, "0"));
  fails(receipt_, "score.json has a different score");
}

TEST_F(Receipt, ACopiedRunIsCheckedAgainstItself) {
  const Path copy = scratch_ / "copy";
  fs::copy(run_, copy, fs::copy_options::recursive);
  std::string bytes = contents(copy / "model.fwy");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  put_file(copy / "model.fwy", bytes);
  fails(copy / "receipt.json", (copy / "model.fwy").string());
  holds(receipt_);
  fs::remove_all(copy);
  fs::create_directories(scratch_ / "moved");
  fs::rename(run_, scratch_ / "moved" / "run");
  fs::rename(data_, scratch_ / "moved" / "data");
  holds(scratch_ / "moved" / "run" / "receipt.json", {"--again"});
  fs::rename(scratch_ / "moved" / "data", scratch_ / "elsewhere");
  fails(scratch_ / "moved" / "run" / "receipt.json", "the data is missing");
  Args elsewhere{"audit", "--verify", (scratch_ / "moved" / "run" / "receipt.json").string(), "--data",
                 (scratch_ / "elsewhere").string()};
  EXPECT_EQ(run_program(elsewhere).status, 0);
}

TEST_F(Receipt, CountsOfBytesBesideTheShardsBelongToIt) {
  const std::string sidecar = data_ + "/fineweb_val_bytes_000000.bin";
  fairway::data::write_shard(sidecar, std::vector<uint16_t>(1500, 9));
  fails(receipt_, "byte counts (fineweb_val_bytes_*.bin): none in the receipt, SHA-256 ");
}

uint64_t read_so_far(pid_t child) {
  std::ifstream in("/proc/" + std::to_string(child) + "/io");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("rchar: ")) return std::stoull(line.substr(7));
  return 0;
}

// Whenever the file is swapped, the receipt names the bytes that gave its numbers.
TEST_F(Receipt, AnArtifactSwappedWhileItIsScored) {
  ASSERT_EQ(run_program(train_smoke(data_, scratch_ / "other", {"--steps", "3", "--seed", "9", "--quiet"})).status, 0);
  ASSERT_EQ(run_program({"pack", (scratch_ / "other").string(), "--data", data_, "--quiet"}).status, 0);
  fs::copy(artifact_, scratch_ / "first.fwy");
  const Path out = scratch_ / "scored";
  Child child({"score", artifact_, "--data", data_, "--mode", "sliding", "--stride", "1", "--out", out.string()});
  while (child.running() && read_so_far(child.pid()) < fs::file_size(scratch_ / "first.fwy") + 4) std::this_thread::yield();
  fs::rename(scratch_ / "other" / "model.fwy", artifact_);
  ASSERT_EQ(child.wait().status, 0);
  const auto named = ordered_json::parse(contents(out / "receipt.json"))["artifact"]["sha256"].get<std::string>();
  const bool first = named == fairway::sha256_of_file(scratch_ / "first.fwy");
  EXPECT_TRUE(first || named == fairway::sha256_of_file(artifact_));
  const nlohmann::json fresh = run_json(
      {"score", first ? (scratch_ / "first.fwy").string() : artifact_, "--data", data_, "--mode", "sliding", "--stride", "1"});
  EXPECT_EQ(fresh["val_loss"], nlohmann::json::parse(contents(out / "score.json"))["val_loss"]);
}

}  // namespace
